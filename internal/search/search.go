package search

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Bounds of one search.
const (
	MaxRows  = 250_000
	MaxBytes = 256 << 20 // of payloads
)

// chunks are the sizes of a chunk. They are few, because the plan of a query depends on it. A search begins with firstChunk, so that the first hits come soon;
// the later ones have about chunkBytes of payload.
var chunks = [...]int{50, 100, 250, 500, 1000, 2500, 5000}

const (
	firstChunk = 500
	chunkBytes = 4 << 20
)

// chunkOf returns the largest size of a chunk up to n.
func chunkOf(n int) int {
	size := chunks[0]
	for _, c := range chunks {
		if c <= n {
			size = c
		}
	}
	return size
}

// Store is the part of the store that is searched.
type Store interface {
	ScanEvents(ctx context.Context, s store.EventScan, fn func(*store.ScannedEvent) bool) error
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
}

// A Query selects events. Zero members do not narrow it.
type Query struct {
	TenantID  godwit.TenantID
	Text      string          // in the payload or the idempotency key, whatever the case of ASCII letters
	Type      string          // a type or a pattern
	Attribute string          // name of an attribute that the event has
	Value     string          // of that attribute; empty: any
	Source    godwit.SourceID // by which the event came
	Since     time.Time       // created at or after
	Until     time.Time       // created before
	After     godwit.EventID  // where an earlier search ended
	Limit     int             // hits
}

// A Hit is an event that a query selects.
type Hit struct {
	Event *godwit.Event
	Match string // the text with its surroundings; empty if the query has no text
}

// Reason says why a search ended.
type Reason string

// The reasons.
const (
	All   Reason = "all"   // no event is left
	Limit Reason = "limit" // there are as many hits as wanted
	Bound Reason = "bound" // it has examined as many events, or bytes, as one search may
)

// An End is the end of a search.
type End struct {
	Scanned int
	Reason  Reason
	Next    godwit.EventID // for Query.After, to go on; zero if no event is left
}

// A Listener hears of hits and of progress. A search ends if one of its methods returns an error.
type Listener interface {
	Found(Hit) error
	Reached(scanned int, at time.Time) error
}

// Run searches. It examines about MaxRows events and MaxBytes of payload at most.
func Run(ctx context.Context, s Store, q Query, l Listener) (*End, error) {
	r := &run{store: s, q: q, listener: l, after: q.After}
	if q.Text != "" {
		r.needle = newNeedle(q.Text)
	}
	chunk := firstChunk
	for {
		n, size, err := r.chunk(ctx, chunk)
		if err != nil {
			return nil, err
		}
		if err := r.tell(ctx); err != nil {
			return nil, err
		}
		switch {
		case r.hits >= q.Limit:
			return &End{Scanned: r.scanned, Reason: Limit, Next: r.after}, nil
		case n == 0 || r.last:
			return &End{Scanned: r.scanned, Reason: All}, nil
		case r.scanned >= MaxRows || r.bytes >= MaxBytes:
			return &End{Scanned: r.scanned, Reason: Bound, Next: r.after}, nil
		}
		if err := l.Reached(r.scanned, r.at); err != nil {
			return nil, err
		}
		chunk = 2*chunk + chunk/2
		if size > 0 {
			chunk = min(chunk, int(int64(n)*chunkBytes/size))
		}
		chunk = chunkOf(chunk)
	}
}

// run is a search under way.
type run struct {
	store    Store
	q        Query
	listener Listener
	needle   *needle
	after    godwit.EventID // the last event examined
	at       time.Time      // when it was created
	found    []found        // hits of this chunk
	hits     int
	scanned  int
	bytes    int64
	last     bool // no event is left
}

type found struct {
	id    godwit.EventID
	match string
}

// chunk examines up to limit events.
func (r *run) chunk(ctx context.Context, limit int) (n int, size int64, err error) {
	r.found = r.found[:0]
	scan := store.EventScan{
		TenantID: r.q.TenantID, After: r.after, Since: r.q.Since, Until: r.q.Until, Type: r.q.Type, Bodies: r.needle != nil, Carried: !r.q.Source.IsZero(),
		Limit: limit,
	}
	full := false
	err = r.store.ScanEvents(ctx, scan, func(e *store.ScannedEvent) bool {
		n++
		size += int64(len(e.Body))
		r.after, r.at = e.ID, e.CreatedAt
		if match, ok := r.matches(e); ok {
			r.found = append(r.found, found{e.ID, match})
		}
		full = r.hits+len(r.found) >= r.q.Limit || r.bytes+size >= MaxBytes
		return !full
	})
	r.scanned, r.bytes, r.last = r.scanned+n, r.bytes+size, !full && n < limit
	return n, size, err
}

// tell reads the hits of a chunk completely. One that was swept meanwhile is left out.
func (r *run) tell(ctx context.Context) error {
	for _, f := range r.found {
		e, err := r.store.Event(ctx, r.q.TenantID, f.id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			err = r.listener.Found(Hit{Event: e, Match: f.match})
		}
		if err != nil {
			return err
		}
		r.hits++
	}
	return nil
}

func (r *run) matches(e *store.ScannedEvent) (match string, ok bool) {
	if r.q.Type != "" && !godwit.MatchPattern(r.q.Type, e.Type) {
		return "", false
	}
	if r.q.Attribute != "" && !r.hasAttribute(e) || !r.q.Source.IsZero() && !r.isFrom(e) {
		return "", false
	}
	if r.needle == nil {
		return "", true
	}
	if at := r.needle.index(e.Body); at >= 0 {
		return snippet(e.Body, at, len(r.needle.text)), true
	}
	if at := r.needle.index(e.Key); at >= 0 {
		return snippet(e.Key, at, len(r.needle.text)), true
	}
	return "", false
}

func (r *run) hasAttribute(e *store.ScannedEvent) bool {
	if len(e.Attributes) == 0 {
		return false
	}
	var attributes map[string]string
	if json.Unmarshal(e.Attributes, &attributes) != nil {
		return false
	}
	value, ok := attributes[r.q.Attribute]
	return ok && (r.q.Value == "" || value == r.q.Value)
}

func (r *run) isFrom(e *store.ScannedEvent) bool {
	if len(e.Carried) == 0 {
		return false
	}
	var carried godwit.Carried
	return json.Unmarshal(e.Carried, &carried) == nil && carried.Origin != nil && carried.Origin.Source == r.q.Source
}
