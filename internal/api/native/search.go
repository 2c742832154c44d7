package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/search"
	"github.com/godwit-hq/godwit/internal/store"
)

// SearchLine is one line of a search: an event, progress, or the end.
type SearchLine struct {
	Event    *FoundEvent     `json:"event,omitempty"`
	Progress *SearchProgress `json:"progress,omitempty"`
	End      *SearchEnd      `json:"end,omitempty" doc:"The last line. A search without it was cut off."`
}

// FoundEvent is an event that a search found.
type FoundEvent struct {
	Event
	Size  int    `json:"size" doc:"Length of the payload in bytes"`
	Match string `json:"match,omitempty" doc:"The text with its surroundings, in one line"`
}

// SearchProgress says how far a search has come.
type SearchProgress struct {
	Scanned int       `json:"scanned" doc:"Events examined so far"`
	Reached time.Time `json:"reached" doc:"When the last of them was created"`
}

// SearchEnd says why a search ended.
type SearchEnd struct {
	Scanned int    `json:"scanned" doc:"Events examined"`
	Reason  string `json:"reason" enum:"all,limit,bound" doc:"all: no event is left; limit: as many were found as wanted; bound: one search examines no more"`
	Next    string `json:"next,omitempty" doc:"Pass as cursor to go on; absent if no event is left"`
}

const listSearch listKind = 'f'

// payloadAccess is the access of answers with payloads that take long. It is checked again while they run.
var payloadAccess = mayRead.Portal(godwit.ViewPayloads)

// The bounds of the parameters.
const (
	searchLimit = 50
	mostFound   = 200
	longestText = 256
)

var searchParameters = []string{"text", "type", "key", "source", "attribute", "since", "until", "limit", "cursor"}

func searchEventsDoc(r *router) huma.Operation {
	text := &huma.Schema{Type: huma.TypeString}
	when := &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	least, most := 1.0, float64(mostFound)
	longest := longestText
	return huma.Operation{
		OperationID: "search-events", Summary: "Search events, also by text in their payloads",
		Description: "Newest first, one JSON document a line, as soon as it is known: events, progress in between, and an end. A text is looked for in payloads and idempotency keys, byte for byte, whatever the case of ASCII " +
			"letters; an event whose id it is comes first. There is no index of payloads: a search reads events. One search examines up to 250,000 events and 256 MiB of payload; the end then says how to go on. " +
			"A search ends when its client disconnects. A tenant may have two under way.",
		Parameters: []*huma.Param{
			{Name: "text", In: "query", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest}, Description: "Text in the payload or in the idempotency key, or the id of an event"},
			{Name: "type", In: "query", Schema: text, Description: "Only this type, or those under prefix.*"},
			{Name: "key", In: "query", Schema: text, Description: "Only events with this idempotency key"},
			{Name: "source", In: "query", Schema: text, Description: "Only events that came by this source: its id or name"},
			{Name: "attribute", In: "query", Schema: text, Description: "Only events with this attribute: name:value, or a name for any value"},
			{Name: "since", In: "query", Schema: when, Description: "At or after this time (RFC 3339)"},
			{Name: "until", In: "query", Schema: when, Description: "Before this time (RFC 3339)"},
			{Name: "limit", In: "query", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most, Default: searchLimit}, Description: "How many events at most"},
			{Name: "cursor", In: "query", Schema: text, Description: "next of the search before"},
		},
		Responses: r.failures(map[string]*huma.Response{
			"200": {Description: "Lines of the search", Content: map[string]*huma.MediaType{"application/x-ndjson": {Schema: r.refOf(SearchLine{})}}},
		}),
	}
}

// eventSearch streams the results of searches.
type eventSearch struct {
	store interface {
		search.Store
		ListEvents(ctx context.Context, f store.EventFilter, p store.Page) ([]godwit.Event, error)
	}
	sources sourceFinder
	running *httpapi.Quota
	stall   time.Duration // how long a client may read nothing
	api     *httpapi.API
	clock   clock.Clock
	done    <-chan struct{}
	log     *slog.Logger
}

// searchRequest is what a request asks for.
type searchRequest struct {
	search.Query
	key string
}

// serve streams what the query selects. If it fails half-way it closes the connection, so that the client does not take the part for the whole.
func (h *eventSearch) serve(w http.ResponseWriter, r *http.Request, c *management.Caller) error {
	q, err := h.query(r, c)
	if err != nil {
		return err
	}
	if err := h.running.Acquire(c.Tenant.ID, "searches"); err != nil {
		return err
	}
	defer h.running.Release(c.Tenant.ID, 1)
	ctx, stop := h.api.While(r, payloadAccess, h.clock, h.done) // a shutdown does not wait for searches
	defer stop()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	out := &searchLines{reader: newReader(w, h.stall), again: func() error { return h.api.Recheck(r, payloadAccess) }}
	defer out.end()
	err = h.run(ctx, q, out)
	switch {
	case err == nil, out.gone, r.Context().Err() != nil:
		return nil
	case ctx.Err() == nil && !out.refused:
		h.log.Warn("search cut short", "error", err)
	}
	panic(http.ErrAbortHandler)
}

func (h *eventSearch) run(ctx context.Context, q *searchRequest, out *searchLines) error {
	if q.key != "" {
		return h.byKey(ctx, q, out)
	}
	if id, err := parseEvent("text", q.Text); err == nil && q.After.IsZero() {
		e, err := h.store.Event(ctx, q.TenantID, id)
		if err == nil {
			err = out.Found(search.Hit{Event: e, Match: q.Text})
			out.first = id
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	end, err := search.Run(ctx, h.store, q.Query, out)
	if err != nil {
		return err
	}
	view := SearchEnd{Scanned: end.Scanned, Reason: string(end.Reason)}
	if !end.Next.IsZero() {
		view.Next = cursor(listSearch, end.Next)
	}
	return out.line(SearchLine{End: &view})
}

// byKey finds events by the index over keys.
func (h *eventSearch) byKey(ctx context.Context, q *searchRequest, out *searchLines) error {
	f := store.EventFilter{TenantID: q.TenantID, Type: q.Type, Key: q.key, Since: q.Since, Until: q.Until}
	list, err := h.store.ListEvents(ctx, f, store.Page{After: q.After, Limit: q.Limit})
	if err != nil {
		return err
	}
	for i := range list {
		e, err := h.store.Event(ctx, q.TenantID, list[i].ID)
		if err == nil {
			err = out.Found(search.Hit{Event: e, Match: q.key})
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	end := SearchEnd{Scanned: len(list), Reason: string(search.All)}
	if len(list) == q.Limit {
		end.Reason, end.Next = string(search.Limit), cursor(listSearch, list[len(list)-1].ID)
	}
	return out.line(SearchLine{End: &end})
}

// query reads the parameters.
func (h *eventSearch) query(r *http.Request, c *management.Caller) (*searchRequest, error) {
	in, err := httpapi.ReadQuery(r.URL, searchParameters)
	if err != nil {
		return nil, err
	}
	q := &searchRequest{key: in.Get("key"), Query: search.Query{TenantID: c.Tenant.ID, Text: in.Get("text"), Type: in.Get("type"), Limit: searchLimit}}
	if len(q.Text) > longestText {
		return nil, problem.InvalidRequest.In("text", "must have at most %d bytes", longestText)
	}
	if why := godwit.ValidPattern(q.Type); q.Type != "" && why != "" {
		return nil, problem.Invalid.In("type", "%s", why)
	}
	if q.key != "" && (in.Has("text") || in.Has("attribute") || in.Has("source")) {
		return nil, problem.InvalidRequest.In("key", "goes with type, since and until only")
	}
	if in.Has("attribute") {
		if q.Attribute, q.Value, _ = strings.Cut(in.Get("attribute"), ":"); q.Attribute == "" {
			return nil, problem.InvalidRequest.In("attribute", "must be name:value")
		}
	}
	if in.Has("limit") {
		if q.Limit, err = strconv.Atoi(in.Get("limit")); err != nil || q.Limit < 1 || q.Limit > mostFound {
			return nil, problem.InvalidRequest.In("limit", "must be a number from 1 to %d", mostFound)
		}
	}
	if q.After, err = parseCursor(listSearch, in.Get("cursor")); err != nil {
		return nil, err
	}
	if err := readRange(in, &q.Query); err != nil {
		return nil, err
	}
	if in.Has("source") {
		q.Source, err = h.sources.id(r.Context(), c, SourcePath{ID: in.Get("source")})
		if err != nil {
			return nil, missing("source", "source", err)
		}
	}
	return q, nil
}

func readRange(in url.Values, q *search.Query) (err error) {
	if q.Since, err = timeParam(in, "since"); err != nil {
		return err
	}
	q.Until, err = timeParam(in, "until")
	return err
}

// searchLines writes what a search finds.
type searchLines struct {
	*reader
	again   func() error
	refused bool           // the client may no longer read
	gone    bool           // the client has disconnected
	first   godwit.EventID // written before the search, which may find it again
	buf     bytes.Buffer
}

// Found writes an event.
func (l *searchLines) Found(hit search.Hit) error {
	if hit.Event.ID == l.first {
		return nil
	}
	return l.line(SearchLine{Event: &FoundEvent{Event: eventView(hit.Event), Size: len(hit.Event.Body), Match: hit.Match}})
}

// Reached writes progress.
func (l *searchLines) Reached(scanned int, at time.Time) error {
	return l.line(SearchLine{Progress: &SearchProgress{Scanned: scanned, Reached: at.UTC()}})
}

// line writes a line, unless the client may no longer read.
func (l *searchLines) line(v SearchLine) error {
	if err := l.again(); err != nil {
		l.refused = true
		return err
	}
	l.buf.Reset()
	enc := json.NewEncoder(&l.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	err := l.write(l.buf.Bytes())
	if err == nil {
		err = l.flush()
	}
	l.gone = l.gone || err != nil
	return err
}
