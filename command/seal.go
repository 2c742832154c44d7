package command

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Sealer encrypts the stored values of a command, and authenticates records. A value opens only with the bound it was
// sealed for.
type Sealer interface {
	Seal(plain []byte, bound string) []byte
	Open(sealed []byte, bound string) ([]byte, error)
}

// NewSealer returns a Sealer that uses AES-256-GCM with one key of 32 bytes.
func NewSealer(key []byte) (Sealer, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("sealing key has %d bytes, not 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return sealer{aead}, nil
}

type sealer struct{ aead cipher.AEAD }

func (s sealer) Seal(plain []byte, bound string) []byte {
	return s.aead.Seal(nil, nil, plain, []byte(bound))
}

func (s sealer) Open(sealed []byte, bound string) ([]byte, error) {
	return s.aead.Open(nil, nil, sealed, []byte(bound))
}

// A vault seals values and authenticates records.
type vault struct{ sealer Sealer }

// errTampered reports a record that was changed by other means than the executor.
var errTampered = errors.New("the record was changed outside of the executor")

// authenticate sets the MAC of a record: the sealed digest of all other members, bound to the record's place (IDS-SEC-2).
// Because the digest is sealed, the MAC follows the rotation of the sealer's keys without a key of its own.
func (v vault) authenticate(r *Record) {
	d := r.digest()
	r.MAC = v.sealer.Seal(d[:], macBound(r.Tenant, r.Key))
}

// genuine returns errTampered unless the record is unchanged and at its own place.
func (v vault) genuine(r *Record) error {
	if r == nil {
		return nil
	}
	d := r.digest()
	sealed, err := v.sealer.Open(r.MAC, macBound(r.Tenant, r.Key))
	if err != nil || string(sealed) != string(d[:]) {
		return errTampered
	}
	return nil
}

// digest hashes a record. Times count in microseconds, the precision of stores.
func (r *Record) digest() [32]byte {
	h := sha256.New()
	add := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	text := func(list ...string) {
		for _, s := range list {
			add([]byte(s))
		}
	}
	number := func(list ...int64) {
		for _, v := range list {
			add(binary.BigEndian.AppendUint64(nil, uint64(v)))
		}
	}
	text("record/1", r.Tenant, r.Key, r.CommandID, r.Intent.Entity, r.Intent.Action, r.Intent.Target, string(r.Class), r.Actor,
		r.Principal, r.Fingerprint, string(r.Status), string(r.Substatus), r.OutcomeRef, r.Owner, r.Previous)
	add(r.Outcome)
	add(r.Envelope)
	number(int64(r.KeyVersion), int64(r.Try), r.Version, micros(r.CreatedAt), micros(r.UpdatedAt), micros(r.ExpiresAt), micros(r.LeaseUntil))
	if c := r.Confirmation; c == nil {
		text("none")
	} else {
		text("confirmation")
		add(c.TokenHash)
		add(c.StepUpHash)
		text(c.StepUpBy)
		number(micros(c.ExpiresAt), micros(c.ConfirmedAt), micros(c.StepUpTill))
		// Only Approve reads the makers. Later records leave them out, as records did before the digest had makers.
		if len(c.Makers) > 0 && r.Substatus == AwaitingConfirmation {
			text("makers")
			number(int64(len(c.Makers)))
			text(c.Makers...)
		}
	}
	number(int64(len(r.Ledger)))
	for i := range r.Ledger {
		e := &r.Ledger[i]
		text(e.Name, string(e.State))
		add(e.Result)
		number(micros(e.StartedAt), micros(e.EndedAt))
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func macBound(tenant, key string) string      { return "command-mac:" + tenant + ":" + key }
func outcomeBound(tenant, key string) string  { return "command-outcome:" + tenant + ":" + key }
func envelopeBound(tenant, key string) string { return "command-envelope:" + tenant + ":" + key }
func callBound(tenant, key, name string) string {
	return "command-call:" + tenant + ":" + key + ":" + name
}
func digestText(sum [32]byte) string { return fmt.Sprintf("sha256:%x", sum) }
func random(n int) []byte            { b := make([]byte, n); rand.Read(b); return b }
func (v vault) seal(value any, b string) ([]byte, [32]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, [32]byte{}, err
	}
	return v.sealer.Seal(plain, b), sha256.Sum256(plain), nil
}

func (v vault) open(sealed []byte, bound string, into any) error {
	plain, err := v.sealer.Open(sealed, bound)
	if err != nil {
		return errTampered
	}
	return json.Unmarshal(plain, into)
}
