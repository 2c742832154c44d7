package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// recordDocument holds the members of a record that queries do not select by. Stores keep them as one JSON document beside
// their columns.
type recordDocument struct {
	KeyVersion   int           `json:"key_version,omitempty"`
	Intent       Intent        `json:"intent,omitzero"`
	Class        Class         `json:"class,omitempty"`
	Actor        string        `json:"actor,omitempty"`
	Principal    string        `json:"principal,omitempty"`
	Owner        string        `json:"owner,omitempty"`
	Try          int           `json:"try,omitempty"`
	Confirmation *Confirmation `json:"confirmation,omitempty"`
	Ledger       []LedgerEntry `json:"ledger,omitempty"`
	Previous     string        `json:"previous,omitempty"`
}

// document encodes the record's document. It refuses column texts that a database would refuse or change.
func (r *Record) document() ([]byte, error) {
	for _, text := range []string{r.CommandID, r.OutcomeRef, r.Fingerprint} {
		if !storable(text) {
			return nil, fmt.Errorf("encode command record: %q is not text", text)
		}
	}
	text, err := json.Marshal(&recordDocument{
		r.KeyVersion, r.Intent, r.Class, r.Actor, r.Principal, r.Owner, r.Try, r.Confirmation, r.Ledger, r.Previous,
	})
	if err != nil {
		return nil, fmt.Errorf("encode command record: %w", err)
	}
	return text, nil
}

// SetDocument sets the members that RecordWrite.Document holds. A store calls it for each record that it reads.
//
// A document that cannot be read leaves the members empty: the row was changed by other means, its MAC no longer matches, and the
// executor rejects it. An error would fail every other record of the same batch or list.
func (r *Record) SetDocument(text []byte) {
	var d recordDocument
	if json.Unmarshal(text, &d) != nil {
		return
	}
	r.KeyVersion, r.Intent, r.Class, r.Actor, r.Principal = d.KeyVersion, d.Intent, d.Class, d.Actor, d.Principal
	r.Owner, r.Try, r.Confirmation, r.Ledger, r.Previous = d.Owner, d.Try, d.Confirmation, d.Ledger, d.Previous
}

// storable reports whether every database stores a text unchanged.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }
