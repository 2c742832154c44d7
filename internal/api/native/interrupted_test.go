package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/trace"
)

// interrupted is a store that stores what it is given and, while it is on, reports that the outcome is not known: a
// connection that broke at the commit.
type interrupted struct {
	*sqlite.Store
	on atomic.Bool
	// dead also keeps the guard from ending the key's lease, as a crash does.
	dead atomic.Bool
	// meanwhile, when not nil, runs once, before the next key or endpoint is stored.
	meanwhile atomic.Pointer[func()]
	// late, when not nil, gets the next endpoint while the store is on: its transaction is still under way.
	late func(*godwit.Endpoint, *godwit.Secret)
	// unanswered keeps answers from being stored.
	unanswered atomic.Bool
}

func (s *interrupted) Complete(ctx context.Context, held *godwit.IdempotencyRecord, resp *godwit.StoredResponse, expires time.Time) error {
	if s.unanswered.Load() {
		return fmt.Errorf("connection closed: %w", store.ErrUnavailable)
	}
	return s.Store.Complete(ctx, held, resp, expires)
}

func (s *interrupted) first() {
	if run := s.meanwhile.Swap(nil); run != nil {
		(*run)()
	}
}

func (s *interrupted) after(err error) error {
	if err == nil && s.on.Load() {
		return fmt.Errorf("connection closed: %w", store.ErrUnavailable)
	}
	return err
}

func (s *interrupted) CreateEndpoint(ctx context.Context, e *godwit.Endpoint, secret *godwit.Secret) error {
	return s.after(s.Store.CreateEndpoint(ctx, e, secret))
}

func (s *interrupted) CreateEndpointWithin(ctx context.Context, e *godwit.Endpoint, secret *godwit.Secret, limit int) error {
	if s.on.Load() && s.late != nil {
		s.late(e, secret)
		return s.after(nil)
	}
	s.first()
	return s.after(s.Store.CreateEndpointWithin(ctx, e, secret, limit))
}

func (s *interrupted) CreateTenant(ctx context.Context, t *godwit.Tenant) error {
	return s.after(s.Store.CreateTenant(ctx, t))
}

func (s *interrupted) CreateKey(ctx context.Context, k *godwit.APIKey) error {
	s.first()
	return s.after(s.Store.CreateKey(ctx, k))
}

func (s *interrupted) CreateSource(ctx context.Context, src *godwit.Source) error {
	return s.after(s.Store.CreateSource(ctx, src))
}

func (s *interrupted) UpdateSource(ctx context.Context, src *godwit.Source) error {
	return s.after(s.Store.UpdateSource(ctx, src))
}

func (s *interrupted) AddAcknowledgment(ctx context.Context, a *godwit.Acknowledgment) error {
	return s.after(s.Store.AddAcknowledgment(ctx, a))
}

func (s *interrupted) Interrupt(ctx context.Context, held *godwit.IdempotencyRecord, now time.Time) error {
	if s.dead.Load() {
		return fmt.Errorf("connection closed: %w", store.ErrUnavailable)
	}
	return s.Store.Interrupt(ctx, held, now)
}

// live counts the objects of a list that are neither revoked nor deleted.
func (h *harness) live(path string) int {
	h.t.Helper()
	var list struct {
		Items []struct {
			RevokedAt *time.Time `json:"revoked_at"`
		} `json:"items"`
	}
	h.get(path).want(200).into(&list)
	n := 0
	for _, item := range list.Items {
		if item.RevokedAt == nil {
			n++
		}
	}
	return n
}

// A request whose object was stored, but whose answer was not, is repeated under its key: the repeat gets the object, and there is
// only one.
func TestRepeatOfAnInterruptedCreation(t *testing.T) {
	trace.Covers(t, "IKH-DEF-1", "IKH-SCN-2")
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash=%t", crash), func(t *testing.T) {
			h := newHarness(t)
			for i, c := range []struct{ path, body, list string }{
				{"/v1/endpoints", `{"url":"https://a.example/"}`, "/v1/endpoints"},
				{"/v1/keys", `{"name":"k","scopes":["read"]}`, "/v1/keys"},
				{"/v1/tenants", `{"name":"t"}`, "/v1/tenants"},
				{"/v1/sources", `{"name":"s","scheme":"standard-webhooks"}`, "/v1/sources"},
			} {
				key := fmt.Sprintf(`"interrupted-request-%d"`, i)
				before := h.live(c.list)
				h.losing.on.Store(true)
				h.losing.dead.Store(crash)
				h.post(c.path, c.body, "Idempotency-Key", key).want(503)
				h.clock.Advance(61 * time.Second) // the lease of the key is over
				h.losing.on.Store(false)
				h.losing.dead.Store(false)
				first := h.post(c.path, c.body, "Idempotency-Key", key).want(201)
				if first.replayed() {
					t.Errorf("%s: an interrupted request had an answer", c.path)
				}
				if n := h.live(c.list) - before; n != 1 {
					t.Errorf("%s: %d objects of one request", c.path, n)
				}
				again := h.post(c.path, c.body, "Idempotency-Key", key).want(201)
				if !again.replayed() || string(again.body) != string(first.body) {
					t.Errorf("%s: repeat %s, first %s", c.path, again.body, first.body)
				}
				h.works(c.path, first)
			}
		})
	}
}

// works checks that the value which an answer shows once is the one in force.
func (h *harness) works(path string, a *answer) {
	h.t.Helper()
	var made struct {
		ID, Token string
		Secret    struct{ Value string }
	}
	a.into(&made)
	switch path {
	case "/v1/endpoints":
		id, err := godwit.ParseEndpointID(made.ID)
		must(h.t, err)
		secrets, err := h.store.Secrets(h.t.Context(), h.tenant.ID, id)
		must(h.t, err)
		sum := sha256.Sum256([]byte(made.Secret.Value))
		if len(secrets) != 1 || secrets[0].Hash != hex.EncodeToString(sum[:]) {
			h.t.Errorf("the answer shows another secret than the stored one: %s", a.body)
		}
	case "/v1/keys":
		h.do(call{method: "GET", path: "/v1/endpoints", token: made.Token}).want(200)
	}
}

func TestRepeatOfAnInterruptedRotation(t *testing.T) {
	h := newHarness(t)
	var src struct {
		ID          string
		Credentials []struct{ ID string }
	}
	h.post("/v1/sources", `{"name":"up","scheme":"standard-webhooks"}`).want(201).into(&src)
	path := "/v1/sources/" + src.ID
	h.losing.on.Store(true)
	h.post(path+"/rotate", `{}`, "Idempotency-Key", key1).want(503)
	h.losing.on.Store(false)
	h.clock.Advance(time.Second)
	h.post(path+"/rotate", `{}`, "Idempotency-Key", key1).want(200)
	h.get(path).want(200).into(&src)
	if len(src.Credentials) != 2 {
		t.Errorf("%d credentials after one rotation: %+v", len(src.Credentials), src)
	}
}

// An endpoint that was deleted between the interrupted request and its repeat is created anew.
func TestRepeatAfterADeletion(t *testing.T) {
	h := newHarness(t)
	body := `{"url":"https://a.example/"}`
	h.losing.on.Store(true)
	h.post("/v1/endpoints", body, "Idempotency-Key", key1).want(503)
	h.losing.on.Store(false)
	var list struct{ Items []struct{ ID string } }
	h.get("/v1/endpoints").want(200).into(&list)
	if len(list.Items) != 1 {
		t.Fatalf("endpoints: %+v", list)
	}
	h.do(call{method: "DELETE", path: "/v1/endpoints/" + list.Items[0].ID}).want(204)
	h.clock.Advance(time.Second)
	var made struct{ ID string }
	h.post("/v1/endpoints", body, "Idempotency-Key", key1).want(201).into(&made)
	if made.ID == list.Items[0].ID || h.live("/v1/endpoints") != 1 {
		t.Errorf("got %s, deleted %s", made.ID, list.Items[0].ID)
	}
}

// An API key whose request was interrupted is revoked by the repeat. However often that happens, the last repeat gets a key.
func TestKeyIsCreatedAfterManyInterruptions(t *testing.T) {
	h := newHarness(t)
	const body = `{"name":"k","scopes":["read"]}`
	before := h.live("/v1/keys")
	h.losing.on.Store(true)
	for range 5 {
		h.post("/v1/keys", body, "Idempotency-Key", key1).want(503)
		h.clock.Advance(time.Second)
	}
	h.losing.on.Store(false)
	h.works("/v1/keys", h.post("/v1/keys", body, "Idempotency-Key", key1).want(201))
	if n := h.live("/v1/keys") - before; n != 1 {
		t.Errorf("%d keys of one request", n)
	}
}

// The first request is so slow that its lease ends, and its repeat creates the key. The first neither revokes that key nor
// replaces the answer with its own.
func TestSlowCreationLeavesTheKeyOfItsRepeat(t *testing.T) {
	h := newHarness(t)
	const body = `{"name":"k","scopes":["read"]}`
	before := h.live("/v1/keys")
	var repeat *answer
	meanwhile := func() {
		h.clock.Advance(61 * time.Second)
		repeat = h.post("/v1/keys", body, "Idempotency-Key", key1).want(201)
	}
	h.losing.meanwhile.Store(&meanwhile)
	h.post("/v1/keys", body, "Idempotency-Key", key1).refused(409, problem.KeyInProgress, "")
	h.works("/v1/keys", repeat)
	if n := h.live("/v1/keys") - before; n != 1 {
		t.Errorf("%d keys of one request", n)
	}
	again := h.post("/v1/keys", body, "Idempotency-Key", key1).want(201)
	if !again.replayed() || string(again.body) != string(repeat.body) {
		t.Errorf("again %s, repeat %s", again.body, repeat.body)
	}
}

// The endpoint of the first request becomes visible while the repeat creates its own, and is the last that the tenant may have.
func TestRepeatMeetsItsFirstEndpointAtTheLimit(t *testing.T) {
	h := startHarness(t, harnessOptions{limits: management.Limits{Endpoints: 1, CreationsPerMinute: 5}})
	const body = `{"url":"https://a.example/"}`
	h.losing.on.Store(true)
	var e *godwit.Endpoint
	h.losing.late = func(stored *godwit.Endpoint, secret *godwit.Secret) {
		e = stored
		visible := func() { must(t, h.store.CreateEndpoint(t.Context(), stored, secret)) }
		h.losing.meanwhile.Store(&visible)
	}
	h.post("/v1/endpoints", body, "Idempotency-Key", key1).want(503)
	h.losing.on.Store(false)
	h.clock.Advance(time.Second)
	var made struct{ ID string }
	h.post("/v1/endpoints", body, "Idempotency-Key", key1).want(201).into(&made)
	if made.ID != e.ID.String() || h.live("/v1/endpoints") != 1 {
		t.Errorf("made %s, first %s", made.ID, e.ID)
	}
}

// A delivery that an interrupted request cancelled or replayed is the answer to the repeat, not 409 or 404.
func TestRepeatOfAnInterruptedChangeOfADelivery(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 410)
	e := h.endpoint(receiver.URL)
	w := h.watch()
	event := h.publish("a.b", `1`)
	w.until(godwit.DeliveryTerminal)
	h.post("/v1/endpoints/"+e.ID+"/pause", ``).want(200)
	var l list[Delivery]
	h.get("/v1/deliveries?event=" + event.ID).want(200).into(&l)
	for _, step := range []struct {
		path   string
		status int
		want   string
	}{
		{"/v1/dead-letters/" + l.Items[0].ID + "/replay", 202, "pending"},
		{"/v1/deliveries/" + l.Items[0].ID + "/cancel", 200, "cancelled"},
	} {
		h.losing.unanswered.Store(true)
		h.post(step.path, ``, "Idempotency-Key", key1).want(step.status)
		h.losing.unanswered.Store(false)
		h.clock.Advance(61 * time.Second)
		var d Delivery
		h.post(step.path, ``, "Idempotency-Key", key1).want(step.status).into(&d)
		if d.Status != step.want {
			t.Errorf("%s: %+v", step.path, d)
		}
	}
}

func TestRepeatOfAnInterruptedTestSendsNoSecondEvent(t *testing.T) {
	h := newHarness(t)
	e := h.endpoint(newSink(t).URL)
	path := "/v1/endpoints/" + e.ID + "/test"
	h.losing.unanswered.Store(true)
	first := h.post(path, ``, "Idempotency-Key", key1).want(202)
	h.losing.unanswered.Store(false)
	h.clock.Advance(61 * time.Second)
	repeat := h.post(path, ``, "Idempotency-Key", key1).want(202)
	if repeat.replayed() || string(repeat.body) != string(first.body) || repeat.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("repeat %s, first %s", repeat.body, first.body)
	}
	h.post(path, ``, "Idempotency-Key", `"another-test-of-it"`).want(202)
	var events list[Event]
	h.get("/v1/events?type=" + testEventType).want(200).into(&events)
	if len(events.Items) != 2 {
		t.Errorf("%d events of two tests", len(events.Items))
	}
}
