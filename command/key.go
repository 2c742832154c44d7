package command

import "encoding/json"

// KeyVersion is the version of the rules.
const KeyVersion = 1

// A Derivation is what follows from an envelope.
type Derivation struct {
	Key         string
	KeyVersion  int
	Fingerprint string
	Args        json.RawMessage // normalised
	Principal   string          // who is in the key
}

// Derive derives key and fingerprint of an envelope. Its error is a *Refusal.
func (c *Registered) Derive(e *Envelope) (*Derivation, error) { return nil, &Refusal{Code: Malformed} }

// ProviderKey is the idempotency key that a provider gets with the call of that name.
func ProviderKey(key, name string) string { return key + name }
