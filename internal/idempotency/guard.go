package idempotency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Guard runs a handler at most once for each key.
type Guard struct {
	cfg Config
}

// New makes a Guard.
func New(cfg Config) (*Guard, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	return &Guard{cfg: cfg}, nil
}

// Policy returns the configuration in force, for the published specification.
func (g *Guard) Policy() Config { return g.cfg }

// A Scope is the scope within which a key is unique. The client chooses only the operation (IKH-SEC-7).
type Scope struct {
	Principal godwit.KeyID
	Tenant    godwit.TenantID
	Operation string // method and path
	// Channel, when not empty, names the API of a management request, and Route its route; the guard passes the decision to
	// Config.Decided. They are not part of the scope.
	Channel, Route string
	// Actor, Session and User name the caller in the decision. They are not part of the scope.
	Actor, Session, User string
}

// A Decision is the guard's decision about a request with a key (IDS-EVD-4). It holds neither the key nor the payload.
type Decision struct {
	Scope
	ID          [32]byte // identifies the key within its scope
	Outcome     Outcome
	Fingerprint [32]byte
	Stored      [32]byte // fingerprint of the first request, if it differs
	InProgress  bool     // the first request is not answered yet
	At          time.Time
}

// Outcome is the result of a decision.
type Outcome string

// The outcomes.
const (
	FirstSeen         Outcome = "first_seen"
	DuplicateReplayed Outcome = "duplicate_replayed"
	ConflictRejected  Outcome = "conflict_rejected"
)

// decided passes a decision to Config.Decided.
func (g *Guard) decided(ctx context.Context, s Scope, rec, existing *godwit.IdempotencyRecord, now time.Time) error {
	if g.cfg.Decided == nil || s.Channel == "" {
		return nil
	}
	d := Decision{Scope: s, ID: rec.ID, Outcome: FirstSeen, Fingerprint: rec.Fingerprint, At: now}
	if existing != nil {
		d.Outcome, d.InProgress = DuplicateReplayed, existing.InProgress()
		if existing.Fingerprint != rec.Fingerprint {
			d.Outcome, d.Stored = ConflictRejected, existing.Fingerprint
		}
	}
	if err := g.cfg.Decided(ctx, d); err != nil {
		return fmt.Errorf("leave evidence of a decision: %w", err)
	}
	return nil
}

// ID returns the id of a key's record within the scope.
func (s Scope) ID(key string) [32]byte {
	return godwit.IdempotencyID(s.Principal, s.Tenant.String()+" "+s.Operation, key)
}

// Key reads the key of a request; see Format.Parse.
func (g *Guard) Key(h http.Header) (string, error) { return g.cfg.Format.Parse(h) }

// CheckKey validates a key that came as a member of a body.
func (g *Guard) CheckKey(key string) error { return g.cfg.Format.Check(key) }

// Fingerprint computes the fingerprint of a payload under the policy in force.
func (g *Guard) Fingerprint(p Payload) [32]byte { return g.cfg.Fingerprint.Sum(p) }

// Serve answers a request that must carry a key. The caller has read the body; next receives it again. Methods other than
// POST, PATCH and PUT need no key and leave no record (IKH-DEF-2).
func (g *Guard) Serve(w http.ResponseWriter, r *http.Request, s Scope, body []byte, next http.Handler) {
	if !guarded(r.Method) {
		next.ServeHTTP(w, r)
		return
	}
	key, err := g.Key(r.Header)
	if err != nil {
		g.cfg.Problems.Write(w, r, err)
		return
	}
	// A client that disconnects neither undoes the work nor frees the key half-way (IKH K-10).
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), g.cfg.Timeout)
	defer cancel()
	now := g.cfg.Now().Truncate(time.Microsecond) // as stores keep it
	rec := &godwit.IdempotencyRecord{
		ID:       s.ID(key),
		TenantID: s.Tenant,
		Fingerprint: g.Fingerprint(Payload{
			ContentType: r.Header.Get("Content-Type"), Query: r.URL.RawQuery, Body: body,
		}),
		CreatedAt: now,
		ExpiresAt: now.Add(g.cfg.Lease),
	}
	existing, err := g.cfg.Store.Reserve(ctx, rec)
	if err != nil {
		// Without the record the guard cannot tell a repeat from a first request, so it refuses rather than run the handler
		// twice (EDS T-33).
		g.cfg.Problems.Write(w, r, fmt.Errorf("reserve idempotency key: %w", err))
		return
	}
	held := reservation{record: rec, again: !rec.CreatedAt.Equal(now), store: g.cfg.Store}
	if err := g.decided(ctx, s, rec, existing, now); err != nil {
		if existing == nil {
			g.free(ctx, held, false)
		}
		g.cfg.Problems.Write(w, r, err)
		return
	}
	if existing != nil {
		g.repeat(w, r, rec, existing)
		return
	}
	r = r.WithContext(withReservation(ctx, held))
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.first(w, r, held, next)
}

// guarded reports whether the guard uses keys for the method. PUT is included because a delivery may use it (IKH K-14).
func guarded(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

// repeat answers a request whose key is already used. Another payload is an error even while the first request is in
// progress: a 409 would tell the client to send it again unchanged (IKH K-5).
func (g *Guard) repeat(w http.ResponseWriter, r *http.Request, rec, existing *godwit.IdempotencyRecord) {
	switch {
	case existing.Fingerprint != rec.Fingerprint:
		g.cfg.Problems.Write(w, r, problem.KeyReused.With("this key came with another payload before"))
	case existing.InProgress():
		g.cfg.Problems.Write(w, r, problem.KeyInProgress.With("the first request with this key has not been answered yet"))
	default:
		resp, err := g.open(existing)
		if err != nil {
			g.cfg.Problems.Write(w, r, fmt.Errorf("open stored answer: %w", err))
			return
		}
		Replay(w, resp)
	}
}

// Replay writes a stored response.
func Replay(w http.ResponseWriter, resp *godwit.StoredResponse) {
	h := w.Header()
	if resp.ContentType != "" {
		h.Set("Content-Type", resp.ContentType)
	}
	if resp.Location != "" {
		h.Set("Location", resp.Location)
	}
	h.Set("Cache-Control", "no-store")
	h.Set(ReplayedHeader, "true")
	w.WriteHeader(resp.Status)
	w.Write(resp.Body)
}

func (g *Guard) first(w http.ResponseWriter, r *http.Request, held reservation, next http.Handler) {
	answer := &recorder{header: http.Header{}}
	if cause := run(answer, r, next); cause != nil {
		g.free(r.Context(), held, true)
		g.cfg.Problems.Write(w, r, cause)
		return
	}
	if storable(answer.status()) {
		if err := g.complete(r.Context(), held, answer); err != nil {
			g.cfg.Problems.Write(w, r, err)
			return
		}
	} else {
		g.free(r.Context(), held, answer.status() >= http.StatusInternalServerError)
	}
	answer.copyTo(w)
}

// run recovers from a panic of the handler, so that its key does not stay reserved.
func run(w http.ResponseWriter, r *http.Request, next http.Handler) (cause error) {
	defer func() {
		if v := recover(); v != nil {
			cause = fmt.Errorf("handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	next.ServeHTTP(w, r)
	return nil
}

// storable reports whether a response is the request's final result. Successes and the handler's own refusals are final.
// Responses that may differ next time, and refusals before the handler, are not (EDS T-3).
func storable(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity:
		return true
	}
	return status >= 200 && status < 400
}

// complete stores the response before it is written. From then on it is the response to the key, whether or not the client
// received it. If the store fails, the client still gets the response; the key is free again when the lease ends. It does not if
// another request has taken over the key, because that request's response is the one for the key.
func (g *Guard) complete(ctx context.Context, held reservation, answer *recorder) error {
	ctx, cancel := g.afterwards(ctx)
	defer cancel()
	expires := g.cfg.Now().Add(g.cfg.TimeScale.Real(g.cfg.Window))
	err := g.cfg.Store.Complete(ctx, held.record, g.seal(held.record.ID, answer), expires)
	if errors.Is(err, store.ErrNotFound) {
		return errTakenOver()
	}
	if err != nil {
		g.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "answer not kept for repeats", slog.Any("error", err))
	}
	return nil
}

// afterwards returns a context with a deadline of its own for storing the outcome, because the handler may have used up its
// own. A handler that ended in time has its outcome stored before the lease ends.
func (g *Guard) afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Lease-g.cfg.Timeout)
}

// free lets the next request with the key run. If the effect of this one or of an earlier one is in doubt, the record stays, so
// that a repeat has the same reservation and meets that effect; see Once.
func (g *Guard) free(ctx context.Context, held reservation, doubtful bool) {
	ctx, cancel := g.afterwards(ctx)
	defer cancel()
	var err error
	if doubtful || held.again {
		err = g.cfg.Store.Interrupt(ctx, held.record, g.cfg.Now())
	} else {
		err = g.cfg.Store.Forget(ctx, held.record)
	}
	if err != nil {
		g.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "idempotency key not freed before its lease ends", slog.Any("error", err))
	}
}

func (g *Guard) seal(id [32]byte, answer *recorder) *godwit.StoredResponse {
	resp := &godwit.StoredResponse{Status: answer.status(), Location: answer.header.Get("Location")}
	if n := answer.body.Len(); n == 0 || n > g.cfg.MaxStoredBody {
		return resp
	}
	resp.ContentType = answer.header.Get("Content-Type")
	body := answer.body.Bytes()
	if g.cfg.Redact != nil {
		body = g.cfg.Redact(body)
	}
	resp.Body = g.cfg.Ring.Seal(body, keyring.ForIdempotencyRecord(id))
	return resp
}

func (g *Guard) open(rec *godwit.IdempotencyRecord) (*godwit.StoredResponse, error) {
	resp := *rec.Response
	if len(resp.Body) == 0 {
		return &resp, nil
	}
	body, err := g.cfg.Ring.Open(resp.Body, keyring.ForIdempotencyRecord(rec.ID))
	if err != nil {
		return nil, err
	}
	resp.Body = body
	return &resp, nil
}
