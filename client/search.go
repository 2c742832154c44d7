package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// An EventSearch selects events. Zero members do not narrow it.
type EventSearch struct {
	Text      string // in the payload or the idempotency key, or the id of an event
	Type      string // exact, or a pattern prefix.*
	Key       string // idempotency key; goes with Type, Since and Until only
	Source    string // id or name
	Attribute string // name:value, or a name
	Since     time.Time
	Until     time.Time
	Limit     int    // events at most. Defaults to 50.
	Cursor    string // SearchEnd.Next of the search before
}

func (s *EventSearch) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		"text": s.Text, "type": s.Type, "key": s.Key, "source": s.Source, "attribute": s.Attribute, "cursor": s.Cursor,
	} {
		if text != "" {
			v.Set(name, text)
		}
	}
	for name, t := range map[string]time.Time{"since": s.Since, "until": s.Until} {
		if !t.IsZero() {
			v.Set(name, t.Format(time.RFC3339Nano))
		}
	}
	if s.Limit != 0 {
		v.Set("limit", strconv.Itoa(s.Limit))
	}
	return v
}

// A SearchLine is one of an event, progress, and the end of a search.
type SearchLine struct {
	Event    *FoundEvent     `json:"event"`
	Progress *SearchProgress `json:"progress"`
	End      *SearchEnd      `json:"end"`
}

// A FoundEvent is an event that a search found.
type FoundEvent struct {
	ID             string            `json:"id"`
	Type           string            `json:"type"`
	IdempotencyKey string            `json:"idempotency_key"`
	ContentType    string            `json:"content_type"`
	Attributes     map[string]string `json:"attributes"`
	SourceID       string            `json:"source_id"`
	CreatedAt      time.Time         `json:"created_at"`
	Size           int               `json:"size"`
	Match          string            `json:"match"` // the text with its surroundings

	// Raw is the whole event as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads the event and keeps it.
func (e *FoundEvent) UnmarshalJSON(text []byte) error {
	type plain FoundEvent
	if err := json.Unmarshal(text, (*plain)(e)); err != nil {
		return err
	}
	e.Raw = append(json.RawMessage{}, text...)
	return nil
}

// SearchProgress says how far a search has come.
type SearchProgress struct {
	Scanned int       `json:"scanned"`
	Reached time.Time `json:"reached"`
}

// SearchEnd is the last line of a search.
type SearchEnd struct {
	Scanned int    `json:"scanned"`
	Reason  string `json:"reason"` // all, limit or bound
	Next    string `json:"next"`   // for EventSearch.Cursor, to go on; empty if no event is left
}

// ErrSearchCut reports that a search has no end: the server or the connection failed.
var ErrSearchCut = errors.New("client: the search was cut off")

// SearchEvents searches the tenant's events, newest first, and yields lines as they come. It ends after the first error. To stop, end the iteration or the context.
func (c *Client) SearchEvents(ctx context.Context, s EventSearch) iter.Seq2[*SearchLine, error] {
	return func(yield func(*SearchLine, error) bool) {
		path := "/v1/events/search"
		if v := s.values(); len(v) > 0 {
			path += "?" + v.Encode()
		}
		resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
		if err != nil {
			yield(nil, err)
			return
		}
		defer resp.Body.Close()
		for lines := bufio.NewReader(resp.Body); ; {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
					err = ErrSearchCut
				}
				yield(nil, err)
				return
			}
			line := &SearchLine{}
			if err := json.Unmarshal(text, line); err != nil {
				yield(nil, fmt.Errorf("read line of a search: %w", err))
				return
			}
			if !yield(line, nil) || line.End != nil {
				return
			}
		}
	}
}
