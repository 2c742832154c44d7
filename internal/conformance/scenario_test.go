package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A scenario is one event to one endpoint of its own, whose receiver plays a script.
type scenario struct {
	name   string
	rows   []string
	script []apptest.Reply
	answer func(*apptest.Request) apptest.Reply // in place of a script
	fields apptest.Fields                       // of the endpoint
	sink   *apptest.Sink                        // the receiver. Defaults to the rig's.

	want   []string // outcome of each attempt; each is one request
	status string   // of the delivery in the end
	reason string   // of the last attempt, when it matters
	check  func(t *testing.T, h *history)
}

// Outcomes and scripts that many scenarios share.
var (
	accepted      = []string{"accepted"}
	terminal      = []string{"terminal"}
	thenAccepted  = []string{"transient", "accepted"}
	eventBody     = `{"n":1,"text":"€"}`
	eventPath     = "/v1/events?type="
	ok            = apptest.Status(200)
	afterwardOK   = func(r apptest.Reply) []apptest.Reply { return []apptest.Reply{r, ok} }
	theSame       = func(r apptest.Reply) []apptest.Reply { return []apptest.Reply{r} }
	unknownEffect = func(t *testing.T, h *history) {
		if h.Attempts[0].ReceiverState != "unknown" {
			t.Errorf("receiver_state %q, want unknown", h.Attempts[0].ReceiverState)
		}
	}
)

// A history is everything that is known about a scenario after the window is over and the server has stopped.
type history struct {
	deliveryView
	receipt  receipt
	requests []apptest.Request
	endpoint endpointView
	notices  []noticeView
	rig      *rig
	ep       apptest.Endpoint
	path     string
}

// play sends an event through each scenario, lets the whole retry window go by, stops the server, and then judges.
func play(t *testing.T, r *rig, scenarios []scenario) {
	t.Helper()
	histories := make([]*history, len(scenarios))
	for i := range scenarios {
		histories[i] = begin(r, &scenarios[i], i)
	}
	r.settle()
	r.passWindow()
	for _, h := range histories {
		h.deliveryView = r.delivery(h.receipt.ID, h.ep)
		h.endpoint = r.endpoint(h.ep)
		h.notices = r.notices(h.ep)
	}
	r.end()
	for i := range scenarios {
		sc, h := &scenarios[i], histories[i]
		h.requests = sc.sink.Requests(h.path)
		t.Run(sc.name, func(t *testing.T) {
			if len(sc.rows) > 0 {
				trace.Covers(t, sc.rows...)
			}
			sc.judge(t, h)
		})
	}
}

// begin registers the scenario's endpoint and posts its event.
func begin(r *rig, sc *scenario, i int) *history {
	if sc.sink == nil {
		sc.sink = r.sink
	}
	h := &history{rig: r, path: fmt.Sprintf("/s%d", i)}
	kind := fmt.Sprintf("scenario.s%d", i)
	sc.sink.Script(h.path, sc.script...)
	if sc.answer != nil {
		sc.sink.ReplyFunc(h.path, sc.answer)
	}
	h.ep = r.Endpoint(sc.sink.URL(h.path), apptest.Fields{"patterns": []string{kind}}, sc.fields)
	h.receipt = r.post(apptest.Call{Path: eventPath + kind, Body: eventBody})
	return h
}

// judge checks a history against the scenario and against the rules for every delivery.
func (sc *scenario) judge(t *testing.T, h *history) {
	if got := h.outcomes(); !slices.Equal(got, sc.want) {
		t.Fatalf("outcomes %v, want %v", got, sc.want)
	}
	if len(h.requests) != len(sc.want) {
		t.Errorf("%d requests, want %d", len(h.requests), len(sc.want))
	}
	if h.Status != sc.status {
		t.Errorf("delivery is %s (%s), want %s", h.Status, h.Reason, sc.status)
	}
	if last := h.Attempts[len(h.Attempts)-1].Reason; sc.reason != "" && last != sc.reason {
		t.Errorf("reason %q, want %q", last, sc.reason)
	}
	sameEvent(t, h.receipt, eventBody, h.requests)
	sameRecord(t, h)
	if sc.check != nil {
		sc.check(t, h)
	}
}

// sameEvent checks that requests carry one event: key and payload to the byte (EDS-NET-3, EDS-KEY-3).
func sameEvent(t *testing.T, got receipt, body string, requests []apptest.Request) {
	t.Helper()
	for i, req := range requests {
		if req.Key() != `"`+got.Key+`"` {
			t.Errorf("request %d has the key %s, the receipt %q", i+1, req.Key(), got.Key)
		}
		if !bytes.Equal(req.Body, []byte(body)) {
			t.Errorf("request %d has the body %q, want %q", i+1, req.Body, body)
		}
		if id := req.Header.Get("Godwit-Event-Id"); id != got.ID.String() {
			t.Errorf("request %d is of event %s, want %s", i+1, id, got.ID)
		}
	}
}

// sameRecord checks that each attempt has a record of its own, and which class of failure it was (EDS-DEF-6, EDS-CLS-1).
func sameRecord(t *testing.T, h *history) {
	t.Helper()
	seen := map[string]bool{}
	for i, a := range h.Attempts {
		if seen[a.ID] || !strings.HasPrefix(a.ID, "att_") || a.N != i+1 || a.EventID != h.receipt.ID.String() {
			t.Errorf("attempt %d is recorded as %+v", i+1, a)
		}
		seen[a.ID] = true
		class := "application"
		switch {
		case a.Outcome == "accepted":
			class = ""
		case a.Status == 0, a.Reason == "truncated-response", a.Reason == "blocked-address":
			class = "transport"
		}
		if a.FailureClass != class {
			t.Errorf("attempt %d with status %d has failure_class %q, want %q", i+1, a.Status, a.FailureClass, class)
		}
	}
}
