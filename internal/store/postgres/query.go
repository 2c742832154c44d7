package postgres

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// where builds the condition of a list from the filters that are set, so that each combination gets its own plan.
type where struct {
	terms []string
	args  []any
}

// add appends a term; each ? stands for the next of args.
func (w *where) add(term string, args ...any) {
	for _, arg := range args {
		w.args = append(w.args, arg)
		term = strings.Replace(term, "?", fmt.Sprintf("$%d", len(w.args)), 1)
	}
	w.terms = append(w.terms, term)
}

// owners chooses what a tenant has, or what all tenants of an environment have, and leaves out what is deleted.
func (w *where) owners(tenant godwit.TenantID, environment godwit.EnvironmentID) {
	if environment.IsZero() {
		w.add("tenant_id = ? AND status <> 'deleted'", [16]byte(tenant))
		return
	}
	w.add(`tenant_id IN (SELECT t.id FROM tenants AS t WHERE t.environment_id = ? AND t.deleted_at IS NULL) AND status <> 'deleted'`, [16]byte(environment))
}

// page continues after the last id seen.
func (w *where) page(p store.Page) {
	if p.After != ([16]byte{}) {
		w.add("id < ?", p.After)
	}
}

func (w *where) between(column string, since, until time.Time) {
	if !since.IsZero() {
		w.add(column+" >= ?", since)
	}
	if !until.IsZero() {
		w.add(column+" < ?", until)
	}
}

func (w *where) sql() string { return " WHERE " + strings.Join(w.terms, " AND ") }

// newestFirst writes the limit into the SQL text: there are few different limits, and the plan depends on it.
func (w *where) newestFirst(limit int) string {
	return fmt.Sprintf(" ORDER BY id DESC LIMIT %d", max(limit, 0))
}

type instant struct{ t *time.Time }

// scanTime reads a time in UTC; null is the zero time.
func scanTime(t *time.Time) instant { return instant{t} }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (i instant) ScanTimestamptz(v pgtype.Timestamptz) error {
	*i.t = time.Time{}
	if v.Valid {
		*i.t = v.Time.UTC()
	}
	return nil
}

// optionalTime returns the parameter for a time: null for the zero time.
func optionalTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

type identity[I ~[16]byte] struct{ id *I }

// scanID reads an id; null is the zero id.
func scanID[I ~[16]byte](id *I) identity[I] { return identity[I]{id} }

// ScanUUID implements pgtype.UUIDScanner.
func (i identity[I]) ScanUUID(v pgtype.UUID) error {
	*i.id = I(v.Bytes)
	return nil
}

// optionalID returns the parameter for an id: null for the zero id.
func optionalID[I ~[16]byte](id I) any {
	if id == (I{}) {
		return nil
	}
	return [16]byte(id)
}

// rawIDs converts ids to the driver's type.
func rawIDs[I ~[16]byte](ids []I) [][16]byte {
	raw := make([][16]byte, len(ids))
	for i, id := range ids {
		raw[i] = id
	}
	return raw
}

func decodeMap[M any](text []byte, m *M) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, m)
}

// optionalJSON returns the parameter for a document; nil if it is empty.
func optionalJSON(v any) any {
	text, err := json.Marshal(v)
	if err != nil || string(text) == "{}" || string(text) == "null" {
		return nil
	}
	return text
}

// encodeRaw encodes an object whose values are documents, unchanged; nil if it is empty.
func encodeRaw(m map[string]json.RawMessage) any {
	if len(m) == 0 {
		return nil
	}
	text := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			text = append(text, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil // strings always encode
		}
		text = append(append(text, quoted...), ':')
		text = append(text, m[name]...)
	}
	return append(text, '}')
}

func values[T any](list []*T) []T {
	out := make([]T, len(list))
	for i := range list {
		out[i] = *list[i]
	}
	return out
}

func join(lists ...[]string) []string { return slices.Concat(lists...) }
