package ojs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// Bounds of a page of events.
const (
	defaultPoll = 100
	maxPoll     = 1000
	// maxPollBytes bounds the envelopes of a page. A page holds at least one event.
	maxPollBytes = 8 << 20
	// pollRead and pollReadBytes bound one read of the store, and maxPollReads bounds the reads of one request: a filter
	// that matches nothing must not read the whole store.
	pollRead      = 500
	pollReadBytes = 4 << 20
	maxPollReads  = 20
)

// firstEventAt returns the smallest id of an event created at that time or later.
var firstEventAt func(time.Time) godwit.EventID = godwit.FirstIDAt

// A poll holds the parameters of a poll request.
type poll struct {
	after    godwit.EventID
	patterns []string
	filter   godwit.Filter
	limit    int
}

// eventPage is a page of events. Cursor and HasMore have the names that the specification's polling uses.
type eventPage struct {
	Events     []json.RawMessage `json:"events"`
	Pagination pagination        `json:"pagination"`
	Cursor     string            `json:"cursor"`
	HasMore    bool              `json:"has_more"`
}

// pollEvents lists events in the order of their ids, each as an envelope. It shows only events that no later event can
// precede, so that a client that continues from the cursor misses none.
func (s *server) pollEvents(c *httpapi.Call) error {
	p, err := readPoll(c.R.URL.RawQuery)
	if err != nil {
		return err
	}
	before := firstEventAt(s.cfg.Engine.Watermark())
	out := eventPage{Events: []json.RawMessage{}}
	size, done := 0, false
	for reads := 0; !done && len(out.Events) < p.limit && reads < maxPollReads; reads++ {
		events, err := s.cfg.Store.EventsAfter(c.R.Context(), store.EventRange{
			TenantID: c.Tenant(), After: p.after, Before: before, Patterns: p.patterns, Limit: pollRead, MaxBytes: pollReadBytes,
		})
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if len(events) == 0 {
			break
		}
		for i := range events {
			e := &events[i]
			if p.selects(e) {
				envelope := profile.OJSEnvelopeOf(e)
				if size += len(envelope); size > maxPollBytes && len(out.Events) > 0 || len(out.Events) == p.limit {
					done = true
					break
				}
				out.Events = append(out.Events, envelope)
			}
			p.after = e.ID
		}
	}
	more, err := s.cfg.Store.EventsAfter(c.R.Context(), store.EventRange{
		TenantID: c.Tenant(), After: p.after, Before: before, Patterns: p.patterns, Limit: 1, MaxBytes: 1,
	})
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	out.HasMore, out.Cursor = len(more) > 0, p.after.String()
	out.Pagination = pagination{HasMore: out.HasMore, NextCursor: out.Cursor}
	writeJSON(c.W, http.StatusOK, out)
	return nil
}

// selects applies the criteria that the store does not. Events about the server itself are shown only to clients that name
// their type.
func (p *poll) selects(e *godwit.Event) bool {
	if strings.HasPrefix(e.Type, "godwit.") && !slices.ContainsFunc(p.patterns, func(pattern string) bool {
		return pattern != "*" && godwit.MatchPattern(pattern, e.Type)
	}) {
		return false
	}
	return p.filter.Match(e.Attributes)
}

func readPoll(raw string) (*poll, error) {
	query, err := queryOf(raw)
	if err != nil {
		return nil, err
	}
	p := &poll{patterns: listOf(query, "types"), filter: godwit.Filter{}}
	if p.limit, err = limitOf(query, defaultPoll, maxPoll); err != nil {
		return nil, err
	}
	var wrong []problem.Field
	if p.after, err = afterOf(query); err != nil {
		wrong = append(wrong, problem.Field{Field: "after", Detail: "must be a cursor of this list, or the id of an event as the answer to its post told it"})
	}
	if len(p.patterns) > management.MaxPatterns {
		wrong = append(wrong, problem.Field{Field: "types", Detail: fmt.Sprintf("must be at most %d", management.MaxPatterns)})
	}
	for _, pattern := range p.patterns {
		if why := godwit.ValidPattern(pattern); why != "" {
			wrong = append(wrong, problem.Field{Field: "types", Detail: why})
			break
		}
	}
	for name, attribute := range map[string]string{"queues": attributeQueue, "job_types": attributeJobType} {
		values := listOf(query, name)
		if len(values) > management.MaxFilterValues {
			wrong = append(wrong, problem.Field{Field: name, Detail: fmt.Sprintf("must be at most %d", management.MaxFilterValues)})
		}
		if len(values) > 0 {
			p.filter[attribute] = values
		}
	}
	return p, invalid(wrong)
}

// listOf reads a parameter with several values, separated by commas or in repeated parameters.
func listOf(query url.Values, name string) []string {
	var list []string
	for _, value := range query[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

// afterOf returns the client's position. A cursor is an event's id; the start is an id before all events.
func afterOf(query url.Values) (godwit.EventID, error) {
	text := query.Get("after")
	if text == "" {
		text = query.Get("cursor")
	}
	if text == "" {
		return firstEventAt(time.UnixMilli(0)), nil
	}
	if id, err := godwit.ParseEventID(text); err == nil {
		return id, nil
	}
	return godwit.ParseEventBase32(strings.TrimPrefix(text, "evt_"))
}
