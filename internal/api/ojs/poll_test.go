package ojs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// page is one answer to a poll.
type page struct {
	Events     []json.RawMessage `json:"events"`
	Pagination struct {
		HasMore    bool   `json:"has_more"`
		NextCursor string `json:"next_cursor"`
	} `json:"pagination"`
	Cursor  string `json:"cursor"`
	HasMore bool   `json:"has_more"`
}

func (r *rig) poll(query string) page {
	r.t.Helper()
	var p page
	r.Must(apptest.Call{Path: events + "?" + query}, &p)
	if p.Cursor != p.Pagination.NextCursor || p.HasMore != p.Pagination.HasMore || p.Cursor == "" {
		r.t.Errorf("%s: %+v", query, p)
	}
	return p
}

// subjects are the subjects of the events of a page, in order.
func (p *page) subjects(t *testing.T) []string {
	t.Helper()
	list := []string{}
	for _, raw := range p.Events {
		var e struct {
			Subject string `json:"subject"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Subject)
	}
	return list
}

func TestPoll(t *testing.T) {
	r := still(t)
	begin := r.poll("")
	if len(begin.Events) != 0 || begin.HasMore {
		t.Errorf("at first: %+v", begin)
	}
	publish := func(subject, kind, queue, job string) {
		r.post(event(object{"type": kind, "subject": subject, "data": object{"queue": queue, "job_type": job}}))
		r.Advance(10 * time.Millisecond) // ids of one millisecond have no order
	}
	publish("1", "job.completed", "a", "x")
	publish("2", "job.failed", "b", "x")
	publish("3", "workflow.completed", "a", "y")
	publish("4", "job.failed", "a", "y")
	publish("5", "job.failed", "b", "y")
	if p := r.poll(""); len(p.Events) != 5 {
		t.Errorf("at once: %v", p.subjects(t))
	}
	for query, want := range map[string]string{
		"":                                     "1 2 3 4 5",
		"types=job.failed":                     "2 4 5",
		"types=job.*":                          "1 2 4 5",
		"types=job.completed,workflow.*":       "1 3",
		"types=job.completed&types=workflow.*": "1 3",
		"types=*":                              "1 2 3 4 5",
		"queues=a":                             "1 3 4",
		"queues=a,b":                           "1 2 3 4 5",
		"queues=a&queues=c":                    "1 3 4",
		"job_types=y&queues=a":                 "3 4",
		"job_types=y&queues=a&types=job.*":     "4",
		"queues=z":                             "",
		"types=nothing":                        "",
		"types=":                               "1 2 3 4 5",
	} {
		p := r.poll(query)
		if got := strings.Join(p.subjects(t), " "); got != want || p.HasMore {
			t.Errorf("%q: %s, want %s (%+v)", query, got, want, p)
		}
		// Pages of one event give the same list, for every filter, and the last cursor stays valid.
		var seen []string
		after := begin.Cursor
		for range 20 {
			p := r.poll(query + "&limit=1&after=" + after)
			seen = append(seen, p.subjects(t)...)
			if after = p.Cursor; !p.HasMore {
				break
			}
		}
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("%q one at a time: %s, want %s", query, got, want)
		}
		if p := r.poll(query + "&after=" + after); len(p.Events) != 0 || p.Cursor != after {
			t.Errorf("%q at the end: %+v, was at %s", query, p, after)
		}
	}
	end := r.poll("")
	publish("6", "job.failed", "a", "x")
	r.Advance(2 * time.Second)
	if p := r.poll("cursor=" + end.Cursor); !slices.Equal(p.subjects(t), []string{"6"}) {
		t.Errorf("after the end: %+v", p)
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=1001": "limit", "after=x": "after", "after=evt_x": "after", "types=*.x": "types", "after=a&after=b": "after",
		"queues=" + strings.Repeat("a,", 101): "queues", "types=" + strings.Repeat("a,", 101): "types",
	} {
		if got := r.send(t, 400, apptest.Call{Path: events + "?" + query}); !slices.Equal(fields(got), []string{field}) {
			t.Errorf("%.40s: %v", query, got)
		}
	}
}

// TestPollShowsEveryFormat: events of other dialects are shown as envelopes; events of this dialect are shown unchanged.
func TestPollShowsEveryFormat(t *testing.T) {
	r := still(t)
	raw := r.Publish("order.paid", `{"n":1}`)
	r.Advance(10 * time.Millisecond)
	own := `{"specversion":"1.0","id":"mine","type":"job.failed","source":"ojs://s","time":"2026-02-15T22:00:00Z","data":{"n":1.0}}`
	r.post(own)
	r.Advance(2 * time.Second)
	p := r.poll("")
	if len(p.Events) != 2 || string(p.Events[1]) != own {
		t.Fatalf("%s", p.Events)
	}
	var env object
	if err := json.Unmarshal(p.Events[0], &env); err != nil {
		t.Fatal(err)
	}
	if env["specversion"] != "1.0" || env["id"] != raw.String() || env["type"] != "order.paid" || fmt.Sprint(env["data"]) != "map[n:1]" || env["source"] == nil || env["time"] == nil {
		t.Errorf("%v", env)
	}
	if p := r.poll("after=" + raw.String()); len(p.Events) != 1 {
		t.Errorf("after the first: %s", p.Events)
	}
	if p := r.poll("after=evt_" + raw.Base32()); len(p.Events) != 1 {
		t.Errorf("after the first, in the other rendering: %s", p.Events)
	}
}

// TestPollIsBounded: large events are spread over several pages, and none is left out.
func TestPollIsBounded(t *testing.T) {
	r := still(t)
	const n, size = 24, 900 << 10
	fill := strings.Repeat("x", size)
	for i := range n {
		r.post(event(object{"subject": fmt.Sprint(i), "data": object{"fill": fill}}))
		r.Advance(10 * time.Millisecond)
	}
	r.Advance(2 * time.Second)
	var seen []string
	pages, after := 0, ""
	for {
		resp := r.Must(apptest.Call{Path: events + "?limit=1000&after=" + after}, nil)
		if len(resp.Body) > 9<<20 {
			t.Errorf("a page of %d bytes", len(resp.Body))
		}
		var p page
		resp.JSON(t, &p)
		seen = append(seen, p.subjects(t)...)
		pages++
		if after = p.Cursor; !p.HasMore {
			break
		}
	}
	if len(seen) != n || pages < 2 {
		t.Errorf("%d events on %d pages", len(seen), pages)
	}
	for i, subject := range seen {
		if subject != fmt.Sprint(i) {
			t.Errorf("place %d has %s", i, subject)
		}
	}
}

func TestManifest(t *testing.T) {
	r := newRig(t, apptest.Options{})
	one := r.Call(apptest.Call{Path: "/ojs/manifest", Key: "nobody's key at all, really"})
	two := r.Call(apptest.Call{Path: "/ojs/v1/manifest"})
	if one.Status != 200 || string(one.Body) != string(two.Body) {
		t.Errorf("%d %s\n%s", one.Status, one.Body, two.Body)
	}
	var m struct {
		Endpoints map[string]string `json:"endpoints"`
	}
	one.JSON(t, &m)
	for name, path := range m.Endpoints {
		if resp := r.Call(apptest.Call{Method: "TRACE", Path: path}); resp.Status != 405 {
			t.Errorf("%s at %s: %d", name, path, resp.Status)
		}
	}
}

// TestPollMissesNothing: a client that continues from each cursor while producers write sees every event once and in order.
func TestPollMissesNothing(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		const writers, each = 6, 50
		post := func(c apptest.Call) {
			if resp := r.Call(c); resp.Status != 202 {
				t.Errorf("%d %s", resp.Status, resp.Body)
			}
		}
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range each / 2 { // single events and batches, which take longer to store
					one := event(object{"subject": fmt.Sprintf("%d-%d", w, i)})
					post(apptest.Call{Path: events, Body: one})
					if i%5 == 0 {
						var batch []string
						for k := range 5 {
							batch = append(batch, event(object{"subject": fmt.Sprintf("%d-%d", w, each/2+i+k)}))
						}
						post(apptest.Call{Path: events + "/batch", Body: `{"events":[` + strings.Join(batch, ",") + `]}`})
					}
				}
			})
		}
		go func() {
			writing.Wait()
			post(apptest.Call{Path: events, Body: event(object{"subject": "end"})})
		}()
		// When the last event is shown, every event of an earlier millisecond has been shown; events of the same millisecond
		// may follow it.
		seen := map[string]int{}
		for after := ""; ; {
			p := r.poll("limit=7&after=" + after)
			for _, subject := range p.subjects(t) {
				seen[subject]++
			}
			if after = p.Cursor; seen["end"] > 0 && len(p.Events) == 0 && !p.HasMore {
				break
			}
		}
		if len(seen) != writers*each+1 {
			t.Errorf("%d of %d events were seen", len(seen), writers*each+1)
		}
		for subject, n := range seen {
			if n != 1 {
				t.Errorf("%s was seen %d times", subject, n)
			}
		}
	})
}
