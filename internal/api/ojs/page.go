package ojs

import (
	"encoding/base64"
	"net/url"
	"strconv"

	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// pagination tells the client whether there is a next page and where it starts.
type pagination struct {
	Total      *int   `json:"total,omitempty"`
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// Page lengths (OJS-API-5).
const (
	defaultLimit = 50
	maxLimit     = 200
)

// A listKind prevents the cursor of one list from being used on another.
type listKind byte

const (
	listSubscriptions listKind = 's'
	listDeliveries    listKind = 'd'
)

const cursorVersion = 1

// cursor encodes the last item of a page. It is opaque to clients.
func cursor(kind listKind, id [16]byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{cursorVersion, byte(kind)}, id[:]...))
}

// pageOf reads limit and cursor. It asks the store for one item more than is shown, to learn whether there is a next page.
func pageOf(query url.Values, kind listKind) (store.Page, error) {
	limit, err := limitOf(query, defaultLimit, maxLimit)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{Limit: limit + 1}
	text := query.Get("cursor")
	if text == "" {
		return page, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 18 || b[0] != cursorVersion || b[1] != byte(kind) {
		return page, problem.InvalidRequest.In("cursor", "is not a next_cursor of this list")
	}
	copy(page.After[:], b[2:])
	return page, nil
}

func limitOf(query url.Values, usual, most int) (int, error) {
	if !query.Has("limit") {
		return usual, nil
	}
	n, err := strconv.Atoi(query.Get("limit"))
	if err != nil || n < 1 || n > most {
		return 0, problem.InvalidRequest.In("limit", "must be a whole number from 1 to %d", most)
	}
	return n, nil
}

// cut removes the extra item from a page and returns where the next page starts.
func cut[T any](kind listKind, page store.Page, items []T, id func(*T) [16]byte) ([]T, pagination) {
	if len(items) < page.Limit {
		return items, pagination{}
	}
	items = items[:page.Limit-1]
	return items, pagination{HasMore: true, NextCursor: cursor(kind, id(&items[len(items)-1]))}
}

// queryOf reads the query of a request. It rejects empty parameters, which would select everything, and repeated ones. Those
// that take lists may be repeated, and an empty list is none.
func queryOf(raw string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, problem.InvalidRequest.In("query", "is not a valid query string")
	}
	for _, name := range []string{"limit", "cursor", "after", "subscription_id", "event_id", "status", "event_type"} {
		if len(query[name]) > 1 {
			return nil, problem.InvalidRequest.In(name, "must be given once")
		}
		if query.Has(name) && query.Get(name) == "" && name != "cursor" && name != "after" { // an empty cursor means the first page
			return nil, problem.InvalidRequest.In(name, "must not be empty; leave the parameter out")
		}
	}
	return query, nil
}
