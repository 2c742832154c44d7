package native

import (
	"encoding/base64"
	"time"

	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// PageParams are the query parameters of every list.
type PageParams struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many items at most"`
	Cursor string `query:"cursor" maxLength:"64" doc:"next_cursor of the page before"`
}

// RangeParams narrow a list to a time.
type RangeParams struct {
	Since time.Time `query:"since" doc:"At or after this time (RFC 3339)"`
	Until time.Time `query:"until" doc:"Before this time (RFC 3339)"`
}

// list is a page of a collection, newest first.
type list[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass as cursor to get the next page; absent on the last one"`
}

type listOutput[T any] struct{ Body list[T] }

// A listKind keeps a cursor of one list from being used on another.
type listKind byte

const (
	listTenants listKind = 't'
	listKeys    listKind = 'k'
	listSubs    listKind = 's'
	listEvents  listKind = 'e'
	listDels    listKind = 'd'
	listDead    listKind = 'x'
	listNotices listKind = 'n'
)

const cursorVersion = 1

// cursor names the last item of a page. Clients are not to look into it.
func cursor(kind listKind, id [16]byte) string {
	b := append([]byte{cursorVersion, byte(kind)}, id[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor reads a cursor of the given list; "" is the beginning.
func parseCursor(kind listKind, text string) (id [16]byte, err error) {
	if text == "" {
		return id, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 18 || b[0] != cursorVersion || b[1] != byte(kind) {
		return id, problem.InvalidRequest.In("cursor", "is not a next_cursor of this list")
	}
	copy(id[:], b[2:])
	return id, nil
}

// page asks the store for one item more than is shown: that is how it is known whether there is a next page.
func (p PageParams) page(kind listKind) (store.Page, error) {
	after, err := parseCursor(kind, p.Cursor)
	return store.Page{After: after, Limit: p.Limit + 1}, err
}

// listOf renders a page.
func listOf[T, V any](p PageParams, kind listKind, items []T, id func(*T) [16]byte, view func(*T) V) *listOutput[V] {
	out := &listOutput[V]{Body: list[V]{Items: make([]V, 0, min(len(items), p.Limit))}}
	for i := range items {
		if i == p.Limit {
			out.Body.NextCursor = cursor(kind, id(&items[i-1]))
			break
		}
		out.Body.Items = append(out.Body.Items, view(&items[i]))
	}
	return out
}

// timestamp renders a time; the zero time is left out.
func timestamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// badID tells which parameter is not an id.
func badID(field, example string) error {
	return problem.InvalidRequest.In(field, "must be an id of the form %s", example)
}
