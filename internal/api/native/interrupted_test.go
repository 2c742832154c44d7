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
	return s.after(s.Store.CreateEndpointWithin(ctx, e, secret, limit))
}

func (s *interrupted) CreateTenant(ctx context.Context, t *godwit.Tenant) error {
	return s.after(s.Store.CreateTenant(ctx, t))
}

func (s *interrupted) CreateKey(ctx context.Context, k *godwit.APIKey) error {
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

func (s *interrupted) Interrupt(ctx context.Context, id [32]byte, now time.Time) error {
	if s.dead.Load() {
		return fmt.Errorf("connection closed: %w", store.ErrUnavailable)
	}
	return s.Store.Interrupt(ctx, id, now)
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
	var made struct{ ID string }
	h.post("/v1/endpoints", body, "Idempotency-Key", key1).want(201).into(&made)
	if made.ID == list.Items[0].ID || h.live("/v1/endpoints") != 1 {
		t.Errorf("got %s, deleted %s", made.ID, list.Items[0].ID)
	}
}
