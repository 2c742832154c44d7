package client_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/uuid"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// A hurried client waits in its own time: every wait is written down, and over.
type hurried struct {
	*client.Client
	now   time.Time
	waits []time.Duration
}

func hurry(t *testing.T, url string, retry client.Retry, options ...client.Option) *hurried {
	t.Helper()
	h := &hurried{now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	options = append(options, client.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}),
		client.WithRetry(retry), client.WithClock(func() time.Time { return h.now }, func(d time.Duration) {
			h.now = h.now.Add(d)
			h.waits = append(h.waits, d)
		}))
	c, err := client.New(url, "gdw_key", options...)
	if err != nil {
		t.Fatal(err)
	}
	h.Client = c
	return h
}

const receipt = `{"id":"evt_1","idempotency_key":"x","deliveries":1,"created_at":"2026-07-01T12:00:00Z"}`

var stored = apptest.Status(202).Body("application/json", receipt)

func refusal(status int, code string) apptest.Reply {
	return apptest.Status(status).Body("application/problem+json", fmt.Sprintf(`{"status":%d,"code":%q}`, status, code))
}

// oneRequest fails unless all of these are one request: one field line with one structured-field String, and the same bytes.
func oneRequest(t *testing.T, requests []apptest.Request) (key string) {
	t.Helper()
	for i, q := range requests {
		if n := strings.Count(strings.ToLower(q.Head), "\r\nidempotency-key:"); n != 1 {
			t.Errorf("request %d has %d fields:\n%s", i+1, n, q.Head)
		}
		item, err := httpsfv.UnmarshalItem(q.Header["Idempotency-Key"])
		text, ok := "", false
		if err == nil {
			text, ok = item.Value.(string)
		}
		if !ok || len(item.Params.Names()) != 0 {
			t.Fatalf("request %d: %q is not a string: %v", i+1, q.Header["Idempotency-Key"], err)
		}
		if i > 0 && (q.Key() != requests[0].Key() || sha256.Sum256(q.Body) != sha256.Sum256(requests[0].Body) || q.Path != requests[0].Path) {
			t.Errorf("request %d is another one: %s %s %s", i+1, q.Key(), q.Path, q.Body)
		}
		key = text
	}
	return key
}

// TestRepeatsAreTheSameRequest: whatever goes wrong on the way, one key, one payload.
func TestRepeatsAreTheSameRequest(t *testing.T) {
	trace.Covers(t, "IKH-SYN-1", "IKH-SYN-4", "IKH-UNQ-1", "IKH-UNQ-2", "IKH-UNQ-5", "IKH-RSP-2", "IKH-ERR-6")
	sink := apptest.NewSink(t)
	troubles := []apptest.Reply{
		apptest.Hangup(), apptest.Reset(), apptest.Truncated(202, 500, receipt), apptest.Status(408), refusal(409, "idempotency-in-progress"),
		apptest.Status(425), apptest.RetryAfter(429, "7"), apptest.Status(500), apptest.Status(502), apptest.RetryAfter(503, "30"), apptest.Status(504), stored,
	}
	sink.Script("/v1/events", troubles...)
	h := hurry(t, sink.URL(""), client.Retry{Max: 50, Elapsed: time.Hour})
	if _, err := h.Publish(t.Context(), client.Event{Type: "a.b", Body: []byte(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	requests := sink.Requests("/v1/events")
	if len(requests) != len(troubles) || len(h.waits) != len(troubles)-1 {
		t.Fatalf("%d requests, %d waits", len(requests), len(h.waits))
	}
	key := oneRequest(t, requests)
	if id, err := uuid.Parse(key); err != nil || id.Version() != 4 {
		t.Errorf("the key %q is no random UUID: %v", key, err)
	}
	for i, wait := range h.waits {
		floor := map[int]time.Duration{6: 7 * time.Second, 9: 30 * time.Second}[i]
		if window := min(250*time.Millisecond<<i, 10*time.Second); wait < floor || wait > floor+window {
			t.Errorf("wait %d is %s, between %s and %s would be right", i+1, wait, floor, floor+window)
		}
	}
	// The next event has another key; the caller's own stays what it is, quoted.
	sink.Script("/v1/events", stored)
	if _, err := h.Publish(t.Context(), client.Event{Type: "a.b", Body: []byte(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	if next := oneRequest(t, sink.Requests("/v1/events")[len(troubles):]); next == key {
		t.Error("two events have one key")
	}
	const odd = `a "quoted" key \ of the caller`
	if _, err := h.Publish(t.Context(), client.Event{Type: "a.b", IdempotencyKey: odd}); err != nil {
		t.Fatal(err)
	}
	if own := oneRequest(t, sink.Requests("/v1/events")[len(troubles)+1:]); own != odd {
		t.Errorf("the caller's key went out as %q", own)
	}
}

// TestEveryPostHasAKey: events one by one and in batches, and what is registered.
func TestEveryPostHasAKey(t *testing.T) {
	trace.Covers(t, "IKH-RSP-2", "IKH-SYN-1", "IKH-SYN-4")
	sink := apptest.NewSink(t)
	items := apptest.Status(202).Body("application/json", `{"items":[`+receipt+`]}`)
	sink.Script("/v1/events/batch", apptest.Status(503), items)
	sink.Script("/v1/endpoints", apptest.Status(503), apptest.Status(201).Body("application/json", `{"id":"sub_1"}`))
	h := hurry(t, sink.URL(""), client.Retry{})
	if _, err := h.PublishBatch(t.Context(), []client.Event{{Type: "a.b"}, {Type: "a.c"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.CreateEndpoint(t.Context(), client.NewEndpoint{URL: "https://a.example/"}); err != nil {
		t.Fatal(err)
	}
	oneRequest(t, sink.Requests("/v1/events/batch"))
	oneRequest(t, sink.Requests("/v1/endpoints"))
	// Where one event of a batch has a key, all have: the batch has none then.
	sink.Script("/v1/events/batch", items)
	if _, err := h.PublishBatch(t.Context(), []client.Event{{Type: "a.b", IdempotencyKey: "the caller's own"}, {Type: "a.c"}}); err != nil {
		t.Fatal(err)
	}
	last := sink.Requests("/v1/events/batch")[2]
	if last.Header["Idempotency-Key"] != nil || strings.Count(string(last.Body), `"idempotency_key":"`) != 2 || !strings.Contains(string(last.Body), `"idempotency_key":"the caller's own"`) {
		t.Errorf("sent %s with %q", last.Body, last.Header["Idempotency-Key"])
	}
}

// TestWhatWantsACorrectionIsNotRepeated, and what passes by itself is: by the table of the delivery document.
func TestWhatWantsACorrectionIsNotRepeated(t *testing.T) {
	for status, want := range map[int]int{
		400: 1, 401: 1, 402: 1, 403: 1, 404: 1, 405: 1, 406: 1, 410: 1, 411: 1, 413: 1, 414: 1, 415: 1, 417: 1, 418: 1, 422: 1, 423: 1, 426: 1, 428: 1,
		431: 1, 451: 1, 408: 2, 421: 2, 425: 2, 429: 2, 500: 2, 501: 2, 502: 2, 503: 2, 504: 2, 505: 2, 507: 2, 511: 2, 599: 2,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			trace.Covers(t, "IKH-ERR-6", "IKH-ERR-8")
			sink := apptest.NewSink(t)
			sink.Script("/v1/events", refusal(status, "some-code").Fields("Retry-After", "1"), stored)
			_, err := hurry(t, sink.URL(""), client.Retry{}).Publish(t.Context(), client.Event{Type: "a.b"})
			if n := len(sink.Requests("/v1/events")); n != want {
				t.Errorf("%d requests, want %d", n, want)
			}
			var refused *client.Error
			if want == 1 && (!errors.As(err, &refused) || refused.Status != status || refused.Code != "some-code") || want == 2 && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("409", func(t *testing.T) {
		trace.Covers(t, "IKH-ERR-6")
		sink := apptest.NewSink(t)
		sink.Script("/v1/endpoints", refusal(409, "limit-reached"), stored)
		if _, err := hurry(t, sink.URL(""), client.Retry{}).CreateEndpoint(t.Context(), client.NewEndpoint{}); err == nil {
			t.Error("a limit was reached, and it was tried again")
		}
	})
}

// TestRepeatsEnd: by number, by time, if the server asks for a longer wait than is left, and when the caller's context ends.
func TestRepeatsEnd(t *testing.T) {
	sink := apptest.NewSink(t)
	publish := func(ctx context.Context, r client.Retry, reply apptest.Reply, options ...client.Option) (int, *hurried, error) {
		before := len(sink.Requests(""))
		sink.Script("/v1/events", reply)
		h := hurry(t, sink.URL(""), r, options...)
		_, err := h.Publish(ctx, client.Event{Type: "a.b"})
		return len(sink.Requests("")) - before, h, err
	}
	if n, _, err := publish(t.Context(), client.Retry{Max: 3, Elapsed: 24 * time.Hour}, apptest.Status(503)); n != 4 || err == nil {
		t.Errorf("%d requests, %v", n, err)
	}
	n, h, err := publish(t.Context(), client.Retry{Max: 1 << 40, Elapsed: time.Minute}, apptest.Status(503))
	if passed := h.now.Sub(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)); n < 5 || err == nil || passed > time.Minute {
		t.Errorf("%d requests in %s, %v", n, passed, err)
	}
	var refused *client.Error
	if n, h, err := publish(t.Context(), client.Retry{}, apptest.RetryAfter(503, "3600")); n != 1 || len(h.waits) != 0 || !errors.As(err, &refused) {
		t.Errorf("%d requests, waits %v, %v", n, h.waits, err)
	}
	at := time.Date(2026, 7, 1, 12, 0, 9, 0, time.UTC).Format(http.TimeFormat)
	if n, h, _ := publish(t.Context(), client.Retry{Max: 1}, apptest.RetryAfter(503, at)); n != 2 || h.waits[0] < 9*time.Second {
		t.Errorf("%d requests, waits %v although it is told when", n, h.waits)
	}
	if n, h, _ := publish(t.Context(), client.Retry{Max: 1}, apptest.RetryAfter(503, "soon")); n != 2 || h.waits[0] > 250*time.Millisecond {
		t.Errorf("%d requests, waits %v", n, h.waits)
	}
	// A repeat after the server has forgotten the key would be done twice.
	rules := &client.KeyRules{MinLength: 16, MaxLength: 255, Window: 10 * time.Second}
	if n, h, err := publish(t.Context(), client.Retry{Max: 1 << 40, Elapsed: time.Hour}, apptest.Status(503), client.WithKeyRules(rules)); n < 2 || err == nil ||
		h.now.Sub(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)) > 9*time.Second {
		t.Errorf("%d requests until %s, %v", n, h.now, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, _, err := publish(ctx, client.Retry{}, apptest.Status(503)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d requests, %v", n, err)
	}
	// Without being asked for, nothing is repeated.
	sink.Script("/v1/events", apptest.Status(503))
	before := len(sink.Requests(""))
	c, err := client.New(sink.URL(""), "gdw_key")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), client.Event{Type: "a.b"}); err == nil || len(sink.Requests(""))-before != 1 {
		t.Errorf("%d requests, %v", len(sink.Requests(""))-before, err)
	}
}

// TestLostRepliesStoreOnce: the server has done its work, the reply goes nowhere. The event is stored once.
func TestLostRepliesStoreOnce(t *testing.T) {
	trace.Covers(t, "IKH-DEF-6", "IKH-UNQ-4")
	srv := apptest.Start(t, apptest.Options{})
	var n atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if n.Add(1) <= 3 {
			srv.App.Handler().ServeHTTP(httptest.NewRecorder(), q)
			panic(http.ErrAbortHandler)
		}
		srv.App.Handler().ServeHTTP(w, q)
	}))
	t.Cleanup(front.Close)
	c, err := client.New(front.URL, srv.Key, client.WithHTTPClient(front.Client()), client.WithRetry(client.Retry{Base: time.Millisecond, Cap: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Publish(t.Context(), client.Event{Type: "order.paid", Body: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []struct{ ID string } }
	srv.Must(apptest.Call{Path: "/v1/events"}, &list)
	if len(list.Items) != 1 || list.Items[0].ID != r.ID || n.Load() != 4 {
		t.Errorf("%d events after %d requests", len(list.Items), n.Load())
	}
}

// TestKeysKeepToTheRules: the client's keys satisfy the server's rules and the receivers' rules, and differ each time.
func TestKeysKeepToTheRules(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { c.IdempotencyWindow = config.Duration(2 * time.Hour) }})
	c := newClient(t, srv)
	rules, err := c.KeyRules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("published", func(t *testing.T) {
		trace.Covers(t, "IKH-RSP-1")
		if *rules != (client.KeyRules{MinLength: idempotency.DefaultMinLength, MaxLength: idempotency.DefaultMaxLength, Window: 2 * time.Hour}) {
			t.Errorf("rules: %+v", rules)
		}
	})
	t.Run("unique and valid", func(t *testing.T) {
		trace.Covers(t, "IKH-UNQ-4", "IKH-UNQ-5", "IKH-RSP-1")
		format := idempotency.Format{MinLength: rules.MinLength, MaxLength: rules.MaxLength}
		seen := map[string]bool{}
		for range 10_000 {
			key := rules.NewKey()
			id, err := uuid.Parse(key)
			if err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 || seen[key] {
				t.Fatalf("key %q: %v", key, err)
			}
			seen[key] = true
			if err := format.Check(key); err != nil {
				t.Fatalf("the server does not take %q: %v", key, err)
			}
			if got, err := receiver.ParseKey([]string{`"` + key + `"`}, receiver.KeyPolicy{}); err != nil || got != key {
				t.Fatalf("receivers do not take %q: %v", key, err)
			}
		}
	})
	t.Run("other rules", func(t *testing.T) {
		trace.Covers(t, "IKH-RSP-1")
		for _, r := range []client.KeyRules{{MinLength: 40, MaxLength: 64}, {MinLength: 16, MaxLength: 30}, {MinLength: 200, MaxLength: 200}} {
			published := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.Method == http.MethodPost {
					key, err := receiver.ParseKey(q.Header["Idempotency-Key"], receiver.KeyPolicy{Min: r.MinLength, Max: r.MaxLength})
					if err != nil {
						w.WriteHeader(400)
					}
					w.Header().Set("X-Key", key)
					_, _ = io.WriteString(w, receipt)
					return
				}
				fmt.Fprintf(w, `{"api_idempotency_key":{"min_length":%d,"max_length":%d,"window_seconds":60}}`, r.MinLength, r.MaxLength)
			}))
			defer published.Close()
			plain, err := client.New(published.URL, "gdw_key")
			if err != nil {
				t.Fatal(err)
			}
			read, err := plain.KeyRules(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			obeys, err := client.New(published.URL, "gdw_key", client.WithKeyRules(read))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := obeys.Publish(t.Context(), client.Event{Type: "a.b"}); err != nil {
				t.Errorf("%+v: %v", r, err)
			}
			if key := read.NewKey(); len(key) < r.MinLength || len(key) > r.MaxLength || key == read.NewKey() {
				t.Errorf("%+v: key %q", r, key)
			}
			if _, err := obeys.Publish(t.Context(), client.Event{Type: "a.b", IdempotencyKey: "too short"}); err == nil {
				t.Errorf("%+v: a key that is too short was sent", r)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		for _, answer := range []string{`{}`, `{"api_idempotency_key":{"min_length":1,"max_length":8}}`, `nonsense`} {
			silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
			defer silent.Close()
			c, err := client.New(silent.URL, "gdw_key")
			if err != nil {
				t.Fatal(err)
			}
			if rules, err := c.KeyRules(t.Context()); err == nil {
				t.Errorf("%s gives %+v", answer, rules)
			}
		}
	})
}
