package conformance

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// Toward endpoints the server is the client of the Idempotency-Key document; package client and the command send are others.

var everyProfile = []string{"eds", "ojs", "cybercube", "standard-webhooks"}

// sentKey is the key of a request, read by a strict parser of structured fields out of its only field line.
func sentKey(t testing.TB, q *apptest.Request) string {
	t.Helper()
	if n := strings.Count("\r\n"+strings.ToLower(q.Head), "\r\nidempotency-key:"); n != 1 {
		t.Errorf("%s has %d fields:\n%s", q.Path, n, q.Head)
	}
	item, err := httpsfv.UnmarshalItem(q.Header["Idempotency-Key"])
	if err != nil {
		t.Fatalf("%s: %q is no item: %v", q.Path, q.Header["Idempotency-Key"], err)
	}
	key, ok := item.Value.(string)
	if !ok || len(item.Params.Names()) > 0 {
		t.Fatalf("%s: %q is not a string alone", q.Path, q.Header["Idempotency-Key"])
	}
	return key
}

// TestKeyOnTheWire: for every profile and every origin of the key, one field with one string, on every attempt. No header of
// the caller replaces it.
func TestKeyOnTheWire(t *testing.T) {
	trace.Covers(t, "IKH-SYN-1", "IKH-SYN-4", "IKH-RSP-2")
	r := newRig(t, apptest.Options{})
	for _, profile := range everyProfile {
		r.sink.Script("/"+profile, apptest.Status(503), apptest.Status(503), ok)
		r.Endpoint(r.sink.URL("/"+profile), apptest.Fields{"profile": profile, "patterns": []string{"x.*"}, "headers": map[string]string{"X-Mine": "1"},
			"policy": apptest.Fields{"circuit_after": 0}})
	}
	want := map[string]bool{}
	for _, own := range []string{"", `odd "key" \ with, things; in=it`, strings.Repeat("~", 255)} {
		call := apptest.Call{Path: eventPath + "x.y", Body: eventBody}
		if own != "" {
			call.Header = map[string]string{"Idempotency-Key": quoted(own)}
		}
		want[r.post(call).Key] = true
	}
	r.passUntil("all are accepted", func() bool { return len(r.Pending()) == 0 })
	for _, profile := range everyProfile {
		seen := map[string]bool{}
		for _, q := range r.sink.Requests("/" + profile) {
			seen[sentKey(t, &q)] = true
		}
		if len(seen) != len(want) || len(r.sink.Requests("/"+profile)) < 5 {
			t.Errorf("%s: keys %v, want %v", profile, seen, want)
		}
		for key := range want {
			if !seen[key] {
				t.Errorf("%s: %q did not arrive", profile, key)
			}
		}
	}
	for _, name := range []string{"Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"} {
		body := apptest.Fields{"url": r.sink.URL("/own"), "headers": map[string]string{name: `"mine"`}}
		if a := r.Call(apptest.Call{Path: "/v1/endpoints", Body: body}); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("an endpoint with the header %s: %d", name, a.Status)
		}
	}
}

var keyEvents = flag.Int("keys.events", 2000, "events of TestManyKeys, a multiple of 1000; 10000 is the full run")

// TestManyKeys: each event has a key of its own, and its retries keep it.
func TestManyKeys(t *testing.T) {
	trace.Covers(t, "IKH-UNQ-1", "IKH-RSP-2")
	events := *keyEvents
	type seen struct {
		attempts int
		bodies   map[[32]byte]bool
		done     bool
	}
	var mu sync.Mutex
	keys := map[string]*seen{}
	accepted, all := 0, make(chan struct{})
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		key := q.Header.Get("Idempotency-Key")
		h := fnv.New32()
		_, _ = io.WriteString(h, key)
		mu.Lock()
		defer mu.Unlock()
		one := keys[key]
		if one == nil {
			one = &seen{bodies: map[[32]byte]bool{}}
			keys[key] = one
		}
		one.attempts++
		one.bodies[sha256.Sum256(body)] = true
		if h.Sum32()%20 == 0 && one.attempts < 3 { // some come three times
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if !one.done {
			one.done = true
			if accepted++; accepted == events {
				close(all)
			}
		}
	}))
	t.Cleanup(sink.Close)
	srv := apptest.Start(t, apptest.Options{})
	srv.Endpoint(sink.URL, apptest.Fields{"patterns": []string{"x"}, "policy": apptest.Fields{
		"base_seconds": 0.05, "cap_seconds": 0.05, "circuit_after": 0, "concurrency": 64}})
	c, err := client.New(srv.URL, srv.Key)
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]client.Event, godwit.MaxEventsPerBatch)
	for i := range events / len(batch) {
		for k := range batch {
			batch[k] = client.Event{Type: "x", Body: fmt.Appendf(nil, `{"n":%d}`, (i*len(batch)+k)%7)} // many are alike
		}
		if _, err := c.PublishBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	patience := time.NewTimer(5 * time.Minute)
	defer patience.Stop()
	select {
	case <-all:
	case <-patience.C:
	}
	mu.Lock()
	defer mu.Unlock()
	retried := 0
	for key, one := range keys {
		if len(one.bodies) != 1 {
			t.Errorf("%s came with %d payloads", key, len(one.bodies))
		}
		if one.attempts >= 3 {
			retried++
		}
	}
	if len(keys) != events || accepted != events || retried < events/40 {
		t.Errorf("%d keys of %d events, %d accepted, %d of them tried again", len(keys), events, accepted, retried)
	}
}

// TestOneKeyOnePayload: restart, rotation, another header, another profile's envelope, a redelivery: under one key an endpoint
// gets the same bytes every time.
func TestOneKeyOnePayload(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "IKH-UNQ-2", "IKH-UNQ-1")
		r := newRig(t, o)
		endpoints := map[string]apptest.Endpoint{}
		for _, profile := range everyProfile {
			r.sink.ReplyFunc("/"+profile, func(q *apptest.Request) apptest.Reply {
				if q.N < 4 {
					return apptest.Status(503)
				}
				return ok
			})
			endpoints[profile] = r.Endpoint(r.sink.URL("/"+profile), apptest.Fields{"profile": profile, "patterns": []string{"project.created"}, "policy": apptest.Fields{"circuit_after": 0}})
		}
		got := r.post(apptest.Call{Path: eventPath + "project.created", Body: eventBody})
		attempts := func(n int) func() bool {
			return func() bool {
				for _, ep := range endpoints {
					if r.Delivery(got.ID, ep).Attempts < n {
						return false
					}
				}
				return true
			}
		}
		r.passUntil("first attempts", attempts(1))
		r = r.again()
		r.passUntil("second attempts", attempts(2))
		for _, ep := range endpoints {
			r.EndpointCall(ep, "POST", "/rotate-secret", apptest.Fields{"overlap_seconds": 0})
			r.EndpointCall(ep, "PATCH", "", apptest.Fields{"description": "changed", "headers": map[string]string{"X-New": "1"}, "metadata": apptest.Fields{"team": "b"}})
		}
		r.passUntil("accepted", func() bool { return len(r.Pending()) == 0 })
		for _, ep := range endpoints {
			r.Must(apptest.Call{Method: "POST", Path: "/v1/deliveries/" + r.delivery(got.ID, ep).ID + "/retry"}, nil)
		}
		r.passUntil("sent again", attempts(5))
		for _, profile := range everyProfile {
			sums := map[[32]byte]bool{}
			requests := r.sink.Requests("/" + profile)
			for _, q := range requests {
				if sums[sha256.Sum256(q.Body)] = true; sentKey(t, &q) != got.Key {
					t.Errorf("%s: key %s, want %s", profile, q.Key(), got.Key)
				}
			}
			if len(sums) != 1 || len(requests) < 5 {
				t.Errorf("%s: %d payloads in %d requests", profile, len(sums), len(requests))
			}
		}
	})
}

// TestSenderCorrectsFirst: the sender does not resend a request that must be corrected first. 409 needs no correction. Other
// statuses follow the table of the delivery document.
func TestSenderCorrectsFirst(t *testing.T) {
	r := newRig(t, apptest.Options{})
	once, again := []int{400, 401, 403, 404, 405, 410, 413, 415, 422}, []int{409, 408, 425, 429, 500, 502, 503, 504}
	endpoints := map[int]apptest.Endpoint{}
	for _, status := range append(append([]int{}, once...), again...) {
		path := fmt.Sprint("/", status)
		r.sink.Script(path, apptest.Status(status), ok)
		endpoints[status] = r.Endpoint(r.sink.URL(path), apptest.Fields{"patterns": []string{"x"}, "policy": apptest.Fields{"refresh_on_401": false}})
	}
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.passUntil("an end", func() bool { return len(r.Pending()) == 0 })
	r.passWindow()
	check := func(t *testing.T, status, want int) {
		t.Helper()
		requests := r.sink.Requests(fmt.Sprint("/", status))
		if len(requests) != want {
			t.Errorf("%d: %d requests, want %d", status, len(requests), want)
		}
		sameEvent(t, got, eventBody, requests)
	}
	t.Run("400 and 422", func(t *testing.T) {
		trace.Covers(t, "IKH-ERR-6")
		check(t, 400, 1)
		check(t, 422, 1)
		check(t, 409, 2)
	})
	t.Run("others", func(t *testing.T) {
		trace.Covers(t, "IKH-ERR-8")
		for _, status := range once {
			check(t, status, 1)
		}
		for _, status := range again {
			check(t, status, 2)
		}
	})
}

// TestReceiversFormat: an endpoint stores its receiver's published key format and window. Generated keys match the format,
// and retries end within the window.
func TestReceiversFormat(t *testing.T) {
	trace.Covers(t, "IKH-RSP-1")
	r := newRig(t, apptest.Options{})
	narrow := r.Endpoint(r.sink.URL("/narrow"), apptest.Fields{"patterns": []string{"x"}, "policy": apptest.Fields{
		"key_min_length": 24, "key_max_length": 24, "key_alphabet": "alphanumeric", "dedup_window_seconds": 7200, "max_elapsed_seconds": 3600}})
	r.Endpoint(r.sink.URL("/wide"), apptest.Fields{"patterns": []string{"x", "y"}})
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.settle()
	if !regexp.MustCompile(`^[0-9A-Za-z]{24}$`).MatchString(got.Key) {
		t.Errorf("key %q", got.Key)
	}
	for _, path := range []string{"/narrow", "/wide"} {
		if q := r.sink.WaitOn(path, 1)[0]; sentKey(t, &q) != got.Key {
			t.Errorf("%s got %s", path, q.Key())
		}
	}
	if other := r.post(apptest.Call{Path: eventPath + "y", Body: eventBody}); len(other.Key) != 36 {
		t.Errorf("without that receiver the key is %q", other.Key)
	}
	own := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody, Header: map[string]string{"Idempotency-Key": `"the producer's own key is not rewritten"`}})
	if own.Key != "the producer's own key is not rewritten" {
		t.Errorf("the producer's key became %q", own.Key)
	}
	var stats struct {
		Policy     map[string]any
		Overridden []string
	}
	r.EndpointCall(narrow, "GET", "/stats", nil).JSON(t, &stats)
	if stats.Policy["key_max_length"] != 24.0 || stats.Policy["key_alphabet"] != "alphanumeric" || stats.Policy["dedup_window_seconds"] != 7200.0 {
		t.Errorf("policy %v", stats.Policy)
	}
	for _, wrong := range []apptest.Fields{{"max_elapsed_seconds": 7200}, {"key_max_length": 10}, {"key_alphabet": "runes"}, {"key_min_length": 30}} {
		if a := r.Call(apptest.Call{Method: "PATCH", Path: "/v1/endpoints/" + narrow.ID.String(), Body: apptest.Fields{"policy": wrong}}); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", wrong, a.Status)
		}
	}
}

// TestMintedKeysAreGood: generated keys satisfy the server's own rules and those of its receivers.
func TestMintedKeysAreGood(t *testing.T) {
	trace.Covers(t, "IKH-UNQ-4", "IKH-UNQ-5")
	format := idempotency.Format{MinLength: idempotency.DefaultMinLength, MaxLength: idempotency.DefaultMaxLength}
	seen := map[string]bool{}
	for range 10_000 {
		key := engine.NewKey()
		if err := format.Check(key); err != nil || seen[key] {
			t.Fatalf("key %q: %v", key, err)
		}
		seen[key] = true
		if got, err := receiver.ParseKey([]string{quoted(key)}, receiver.KeyPolicy{}); err != nil || got != key {
			t.Fatalf("key %q: %v", key, err)
		}
	}
}

// TestSendCommandInsists: the command resends the same request if the response is lost, the server is busy, or the first
// request is in progress. It does not resend a refused one.
func TestSendCommandInsists(t *testing.T) {
	trace.Covers(t, "IKH-ERR-6", "IKH-RSP-2", "IKH-UNQ-1", "IKH-UNQ-2")
	sink := apptest.NewSink(t)
	send := func(more ...string) (string, error) {
		var out bytes.Buffer
		cmd := exec.Command(apptest.Binary(t), append([]string{"send", "order.paid", `{"n":1}`, "--url", sink.URL(""), "--json"}, more...)...)
		cmd.Env, cmd.Stdout = append(cmd.Environ(), "GODWIT_KEY=gdw_key"), &out
		return out.String(), cmd.Run()
	}
	sink.Script("/v1/events", apptest.Hangup(), apptest.Status(503), apptest.Status(409).Body("application/problem+json", `{"status":409,"code":"idempotency-in-progress"}`),
		apptest.Status(202).Body("application/json", `{"id":"evt_1","deliveries":1}`))
	if _, err := send(); err != nil {
		t.Fatal(err)
	}
	requests := sink.Requests("/v1/events")
	if len(requests) != 4 {
		t.Fatalf("%d requests", len(requests))
	}
	for i := range requests {
		if sentKey(t, &requests[i]) != sentKey(t, &requests[0]) || string(requests[i].Body) != `{"n":1}` {
			t.Errorf("request %d: %s %s", i+1, requests[i].Key(), requests[i].Body)
		}
	}
	sink.Script("/v1/events", apptest.Status(422).Body("application/problem+json", `{"status":422,"code":"validation-failed"}`))
	var failed *exec.ExitError
	if _, err := send(); !errors.As(err, &failed) || len(sink.Requests("/v1/events")) != 5 {
		t.Errorf("%d requests, %v", len(sink.Requests("/v1/events")), err)
	}
	if first, last := sink.Requests("/v1/events")[0], sink.Requests("/v1/events")[4]; first.Key() == last.Key() {
		t.Error("two events have one key")
	}
	sink.Script("/v1/events", apptest.Status(503))
	if _, err := send("--retry-for", "0s"); !errors.As(err, &failed) || len(sink.Requests("/v1/events")) != 6 {
		t.Errorf("%d requests, %v", len(sink.Requests("/v1/events")), err)
	}
}
