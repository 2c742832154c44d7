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

// Terms are what an upstream relies on once it was answered before its event was delivered: the part of the service
// description that an acknowledgment is about. Times are in seconds.
type Terms struct {
	// Durability is what an acknowledgement of ours means, in the store's words.
	Durability string `json:"durability"`
	// Retention is how long an event is kept for delivery.
	Retention float64 `json:"retention_seconds"`
	// DedupWindow is how long a key is remembered.
	DedupWindow float64 `json:"dedup_window_seconds"`
	// DeadLetters is how long what could not be delivered is kept for an operator.
	DeadLetters float64 `json:"dead_letter_seconds"`
	// Retries is how far delivery to an endpoint is tried, by profile.
	Retries map[string]RetryTerms `json:"retries"`
}

// RetryTerms bound the attempts to deliver.
type RetryTerms struct {
	MaxRetries int     `json:"max_retries"`
	MaxElapsed float64 `json:"max_elapsed_seconds"`
}

// RetriesByProfile is what the profiles promise.
func RetriesByProfile() map[string]RetryTerms {
	all := map[string]RetryTerms{}
	for _, name := range profile.Names() {
		p, err := profile.Lookup(name)
		if err != nil {
			continue // it was listed
		}
		d := p.Defaults()
		all[name] = RetryTerms{MaxRetries: d.MaxRetries, MaxElapsed: d.MaxElapsed.Seconds()}
	}
	return all
}

// Version names the terms: equal terms have equal versions, other terms have others.
func (t *Terms) Version() string {
	sum := sha256.Sum256(t.encode())
	return "v1-" + hex.EncodeToString(sum[:8])
}

func (t *Terms) encode() []byte {
	text, err := json.Marshal(t) // members in order, maps sorted: the same text for the same terms
	if err != nil {
		return nil // text and numbers always encode
	}
	return text
}

// AtLeast reports whether an upstream that relies on the other terms loses nothing by these: the durability is the same, and
// every time and bound is at least as large. A durability in other words counts as weaker.
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

// holds reports whether an acknowledgment is good under these terms: it is of them, or of terms that ask for no more.
func (t *Terms) holds(a *godwit.Acknowledgment) bool {
	if a.Version == t.Version() {
		return true
	}
	var acknowledged Terms
	return len(a.Terms) > 0 && json.Unmarshal(a.Terms, &acknowledged) == nil && t.AtLeast(&acknowledged)
}
