package app_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// searched runs a search by the Go client, part by part, and returns the events it found.
func searched(t *testing.T, cl *client.Client, q client.EventSearch) (ids []string, matches string, end client.SearchEnd) {
	t.Helper()
	for line, err := range cl.SearchEvents(context.Background(), q) {
		switch {
		case err != nil:
			t.Fatal(err)
		case line.Event != nil:
			ids, matches = append(ids, line.Event.ID), matches+line.Event.Match+"\n"
		case line.End != nil:
			end = *line.End
		}
	}
	if end.Reason == "" {
		t.Fatal("the search has no end")
	}
	return ids, matches, end
}

// A search finds events by id, key, type, attribute, source, time and text, newest first, and can go on where it ended.
func TestEventsAreSearched(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		var source struct {
			ID     string
			Issued struct{ Secret string }
		}
		s.Must(apptest.Call{Path: "/v1/sources", Body: apptest.Fields{"name": "shop", "scheme": "bearer", "mode": "store-and-forward", "event_type": apptest.Fields{"fixed": "shop.told"}}}, &source)
		var events []godwit.EventID
		for i := range 9 {
			path := fmt.Sprintf("/v1/events?type=%s&attr.country=%s", []string{"order.paid", "order.item.added", "invoice.sent"}[i%3], []string{"de", "fr"}[i%2])
			events = append(events, s.Post(apptest.Call{Path: path, Body: fmt.Sprintf(`{"note":"Order No %d of Müller","n":%d}`, 4711+i, i),
				Header: map[string]string{"Idempotency-Key": fmt.Sprintf(`"the-key-of-order-%d"`, i)}}))
		}
		s.Endpoint(apptest.NewSink(t).URL("/"), apptest.Fields{"patterns": []string{"shop.*"}}) // a source needs a receiver
		if r := s.Call(apptest.Call{Path: "/in/" + source.ID, Key: source.Issued.Secret, Header: map[string]string{"Idempotency-Key": `"a-key-of-the-upstream"`}, Body: `{"hello":"from the shop"}`}); r.Status >= 300 {
			t.Fatalf("source: %d %s", r.Status, r.Body)
		}
		cl, err := client.New(s.URL, s.Key)
		if err != nil {
			t.Fatal(err)
		}
		var third struct {
			CreatedAt time.Time `json:"created_at"`
		}
		s.Must(apptest.Call{Path: "/v1/events/" + events[3].String()}, &third)
		newest := func(indexes ...int) (ids []string) {
			for _, i := range indexes {
				ids = append(ids, events[i].String())
			}
			slices.Sort(ids) // ids of one millisecond are in no order
			slices.Reverse(ids)
			return ids
		}
		for name, c := range map[string]struct {
			q     client.EventSearch
			want  []string
			match string
		}{
			"text, in another case": {client.EventSearch{Text: "oRDER no 4713"}, newest(2), `{"note":"Order No 4713 of Müller","n":2}`},
			"text beyond ASCII":     {client.EventSearch{Text: "müller", Type: "invoice.sent"}, newest(8, 5, 2), "of Müller"},
			"an id":                 {client.EventSearch{Text: events[4].String()}, newest(4), events[4].String()},
			"a part of a key":       {client.EventSearch{Text: "key-of-order-7"}, newest(7), "the-key-of-order-7"},
			"a key":                 {client.EventSearch{Key: "the-key-of-order-6"}, newest(6), "the-key-of-order-6"},
			"a type":                {client.EventSearch{Type: "order.item.added"}, newest(7, 4, 1), ""},
			"types":                 {client.EventSearch{Type: "order.*", Text: "no 47"}, newest(7, 6, 4, 3, 1, 0), ""},
			"an attribute":          {client.EventSearch{Attribute: "country:de", Type: "order.paid"}, newest(6, 0), ""},
			"any value":             {client.EventSearch{Attribute: "country", Text: `"n":8`}, newest(8), ""},
			"no such attribute":     {client.EventSearch{Attribute: "country:us"}, nil, ""},
			"a time":                {client.EventSearch{Since: third.CreatedAt, Text: "Order No"}, newest(8, 7, 6, 5, 4, 3), ""},
			"before a time":         {client.EventSearch{Until: third.CreatedAt}, newest(2, 1, 0), ""},
			"nothing":               {client.EventSearch{Text: "not there"}, nil, ""},
		} {
			ids, matches, end := searched(t, cl, c.q)
			if strings.Join(ids, " ") != strings.Join(c.want, " ") || !strings.Contains(matches, c.match) || end.Reason != "all" || end.Next != "" {
				t.Errorf("%s: found %v with %q (%+v), want %v", name, ids, matches, end, c.want)
			}
		}
		for _, named := range []string{"shop", source.ID} {
			if ids, _, _ := searched(t, cl, client.EventSearch{Source: named}); len(ids) != 1 {
				t.Errorf("by the source %s: %v", named, ids)
			}
		}

		var ids []string
		for q := (client.EventSearch{Text: "order no", Limit: 4}); ; {
			part, _, end := searched(t, cl, q)
			ids = append(ids, part...)
			if q.Cursor = end.Next; end.Next == "" {
				break
			}
			if end.Reason != "limit" || len(part) != 4 {
				t.Errorf("a part of 4: %v %+v", part, end)
			}
		}
		if strings.Join(ids, " ") != strings.Join(newest(8, 7, 6, 5, 4, 3, 2, 1, 0), " ") {
			t.Errorf("in parts: %v", ids)
		}

		for query, field := range map[string]string{
			"text=": "text", "text=" + strings.Repeat("a", 257): "text", "type=a..b": "type", "attribute=:x": "attribute", "source=unknown": "source", "since=now": "since", "limit=0": "limit",
			"limit=1000": "limit", "cursor=x": "cursor", "key=a&text=b": "key", "body=x": "body",
		} {
			if r := s.Call(apptest.Call{Path: "/v1/events/search?" + query}); r.Status != 400 && r.Status != 422 || !strings.Contains(string(r.Body), field) {
				t.Errorf("%s: %d %s", query, r.Status, r.Body)
			}
		}
		_, other := s.NewTenant("other", godwit.ScopeRead)
		for _, text := range []string{"order", events[0].String()} {
			if r := s.Call(apptest.Call{Path: "/v1/events/search?text=" + url.QueryEscape(text), Key: other}); strings.Contains(string(r.Body), `"event"`) {
				t.Errorf("another tenant found %s", r.Body)
			}
		}
	})
}
