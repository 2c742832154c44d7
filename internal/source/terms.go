package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// Terms are the promises that an upstream relies on if it is answered before its event is delivered. An acknowledgment
// refers to this part of the service description. Times are in seconds.
type Terms struct {
	// Durability says what a successful response guarantees, in the store's words.
	Durability string `json:"durability"`
	// Retention is how long an event is kept for delivery.
	Retention float64 `json:"retention_seconds"`
	// DedupWindow is how long a key is remembered.
	DedupWindow float64 `json:"dedup_window_seconds"`
	// DeadLetters is how long undeliverable events are kept for an operator.
	DeadLetters float64 `json:"dead_letter_seconds"`
	// Retries bounds the attempts of a delivery, by profile.
	Retries map[string]RetryTerms `json:"retries"`
}

// RetryTerms bound the attempts to deliver.
type RetryTerms struct {
	MaxRetries int     `json:"max_retries"`
	MaxElapsed float64 `json:"max_elapsed_seconds"`
}

// RetriesByProfile returns the promises of the profiles.
func RetriesByProfile() map[string]RetryTerms {
	all := map[string]RetryTerms{}
	for _, name := range profile.Names() {
		p, err := profile.Lookup(name)
		if err != nil {
			continue // listed already
		}
		d := p.Defaults()
		all[name] = RetryTerms{MaxRetries: d.MaxRetries, MaxElapsed: d.MaxElapsed.Seconds()}
	}
	return all
}

// Version identifies the terms: equal terms have equal versions, and different terms have different ones.
func (t *Terms) Version() string {
	sum := sha256.Sum256(t.encode())
	return "v1-" + hex.EncodeToString(sum[:8])
}

func (t *Terms) encode() []byte {
	text, err := json.Marshal(t) // struct members are in order and maps are sorted, so equal terms give equal text
	if err != nil {
		return nil // strings and numbers always encode
	}
	return text
}

// AtLeast reports whether these terms promise at least as much as the other terms: the durability is the same, and every
// time and bound is at least as large. A different durability text counts as weaker.
func (t *Terms) AtLeast(other *Terms) bool {
	if t.Durability != other.Durability || t.Retention < other.Retention || t.DedupWindow < other.DedupWindow || t.DeadLetters < other.DeadLetters {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(other.Retries)) {
		now, ok := t.Retries[name]
		if was := other.Retries[name]; !ok || now.MaxRetries < was.MaxRetries || now.MaxElapsed < was.MaxElapsed {
			return false
		}
	}
	return true
}

// holds reports whether an acknowledgment is valid under these terms: it refers to them, or to terms that promise no more.
func (t *Terms) holds(a *godwit.Acknowledgment) bool {
	if a.Version == t.Version() {
		return true
	}
	var acknowledged Terms
	return len(a.Terms) > 0 && json.Unmarshal(a.Terms, &acknowledged) == nil && t.AtLeast(&acknowledged)
}
