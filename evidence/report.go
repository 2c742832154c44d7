package evidence

import (
	"fmt"
	"time"
)

// A Report is the result of Verify.
type Report struct {
	// Broken is the first broken link; nil if the file is valid.
	Broken *Broken `json:"broken,omitempty"`

	// From the header, once its signature was verified.
	Tenant     string    `json:"tenant,omitempty"`
	From       int64     `json:"from_seq,omitempty"`
	To         int64     `json:"to_seq"`
	PrevHash   string    `json:"prev_hash,omitempty"`
	ToHash     string    `json:"to_hash,omitempty"`
	ExportedAt time.Time `json:"exported_at,omitzero"`
	KeyID      string    `json:"key_id,omitempty"`
	PublicKey  string    `json:"public_key,omitempty"`
	// Pinned says that the header is signed with one of Options.Keys. Otherwise it was checked with the key that it names itself.
	Pinned bool `json:"pinned"`

	Items int64 `json:"items"` // that are valid
	// Checkpoints counts those with a valid signature and link; Covered is the last item that one of them covers.
	Checkpoints int64 `json:"checkpoints"`
	Covered     int64 `json:"covered_seq,omitempty"`
	// Unlinked counts checkpoints with a valid signature over a link that is not in the file, or too far back to compare.
	Unlinked int64 `json:"checkpoints_unlinked,omitempty"`
	// Unsigned counts checkpoints that were signed with another key than the header's and could not be checked. With pinned
	// keys such a checkpoint is a broken link.
	Unsigned int64 `json:"checkpoints_unchecked,omitempty"`
	// KnownMet counts links of Options.Known that are in the file, unchanged.
	KnownMet int `json:"known_met,omitempty"`
	Known    int `json:"known,omitempty"`

	Totals Totals `json:"totals"`
}

// Totals counts valid items.
type Totals struct {
	Executions int64            `json:"executions"`
	Decisions  map[string]int64 `json:"decisions,omitempty"`
	Types      map[string]int64 `json:"types,omitempty"`
}

// maxNames limits the size of Totals for any file.
const maxNames = 64

func (t *Totals) add(it *Item) {
	if it.Executed {
		t.Executions++
	}
	count(&t.Types, it.Type)
	if it.Decision != "" {
		count(&t.Decisions, it.Decision)
	}
}

func count(m *map[string]int64, name string) {
	if *m == nil {
		*m = map[string]int64{}
	}
	if _, known := (*m)[name]; !known && len(*m) >= maxNames {
		name = "(other)"
	}
	(*m)[name]++
}

// Notes are sentences about what a valid file does not prove.
func (r *Report) Notes() []string {
	if r.KeyID == "" {
		return nil
	}
	var notes []string
	if !r.Pinned {
		notes = append(notes, "The signature was checked with the key that the file names itself. This shows that the file is whole, not who made it: "+
			"anybody can make a key and a file that holds. Pin the key to know.")
	}
	if r.From > 1 {
		notes = append(notes, fmt.Sprintf("The file is a part of its chain: of the items before %d it holds but the last hash.", r.From))
	}
	if r.Unsigned > 0 {
		notes = append(notes, fmt.Sprintf("%d checkpoints were signed with another key and could not be checked. Pin that key, too.", r.Unsigned))
	}
	if r.Unlinked > 0 {
		notes = append(notes, fmt.Sprintf("%d checkpoints cover a link that is not in the file, or too far back: their signatures are right, "+
			"their links could not be compared.", r.Unlinked))
	}
	if missed := r.Known - r.KnownMet; missed > 0 && r.Broken == nil {
		notes = append(notes, fmt.Sprintf("%d of the known links are not in the file.", missed))
	}
	return notes
}

// Broken is the first broken link of a file, and an error.
type Broken struct {
	Line int64 `json:"line"` // from 1, the header
	// Seq is the sequence number that belongs on the line, 0 for the header.
	Seq    int64  `json:"seq,omitempty"`
	Kind   Kind   `json:"kind"`
	Detail string `json:"detail"`
}

func (b *Broken) Error() string {
	place := fmt.Sprintf("line %d", b.Line)
	if b.Seq > 0 {
		place += fmt.Sprintf(", item %d", b.Seq)
	}
	return place + ": " + b.Detail
}

// Kind is the kind of a broken link. The values are stable.
type Kind string

// The kinds.
const (
	BadFormat     Kind = "unknown_format"
	BadHeader     Kind = "header"          // not canonical, or its members contradict each other
	BadKey        Kind = "key"             // not the pinned one, or not the one that key_id names
	BadSignature  Kind = "signature"       // of the header
	BadLine       Kind = "not_canonical"   // not an item in canonical form
	LineTooLong   Kind = "line_too_long"   //
	BadHash       Kind = "hash"            // the line was changed
	ForeignTenant Kind = "foreign_tenant"  // an item of another chain
	Gap           Kind = "gap"             // items are missing
	Repeated      Kind = "repeated"        // an item occurs twice, or out of order
	BadPrev       Kind = "prev_hash"       // the item does not follow the one before it
	BadCheckpoint Kind = "checkpoint"      // signature or link of a checkpoint
	BadKnown      Kind = "known_link"      // differs from a known link
	BadEnd        Kind = "end"             // the last item is not the one that the header names
	Truncated     Kind = "truncated"       // ends too early
	NoNewline     Kind = "missing_newline" // the last line has no newline
	Trailing      Kind = "trailing"        // more after the last item
)
