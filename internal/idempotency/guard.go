package idempotency

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
)

// A Guard runs a handler at most once for a key.
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

// Policy is the configuration in force, for the published specification.
func (g *Guard) Policy() Config { return g.cfg }

// A Scope is where a key is unique. The client chooses no part of it but the operation (IKH-SEC-7).
type Scope struct {
	Principal godwit.KeyID
	Tenant    godwit.TenantID
	Operation string // method and path
	// Channel, when not empty, is the API whose management request this is, and Route which one: the decision is told to
	// Config.Decided. They are no part of the scope.
	Channel, Route string
}

// A Decision is what was decided about a request with a key (IDS-EVD-4). It holds neither the key nor the payload.
type Decision struct {
	Scope
	ID          [32]byte // names the key within its scope
	Outcome     Outcome
	Fingerprint [32]byte
	Stored      [32]byte // of the first request, where it differs
	InProgress  bool     // the first request has not been answered
	At          time.Time
}

// Outcome is what a decision came to.
type Outcome string

// The outcomes.
const (
	FirstSeen         Outcome = "first_seen"
	DuplicateReplayed Outcome = "duplicate_replayed"
	ConflictRejected  Outcome = "conflict_rejected"
)

// decided tells of a decision.
func (g *Guard) decided(ctx context.Context, s Scope, rec, existing *godwit.IdempotencyRecord) error {
	if g.cfg.Decided == nil || s.Channel == "" {
		return nil
	}
	d := Decision{Scope: s, ID: rec.ID, Outcome: FirstSeen, Fingerprint: rec.Fingerprint, At: rec.CreatedAt}
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

// ID is the name of the record of a key within the scope.
func (s Scope) ID(key string) [32]byte {
	return godwit.IdempotencyID(s.Principal, s.Tenant.String()+" "+s.Operation, key)
}

// Key reads the key of a request; see Format.Parse.
func (g *Guard) Key(h http.Header) (string, error) { return g.cfg.Format.Parse(h) }

// CheckKey judges a key that came as a member of a body.
func (g *Guard) CheckKey(key string) error { return g.cfg.Format.Check(key) }

// Fingerprint sums up a payload by the policy in force.
func (g *Guard) Fingerprint(p Payload) [32]byte { return g.cfg.Fingerprint.Sum(p) }

// Serve answers a request that has to carry a key. The body was read before; next gets it again. A method that changes
// nothing, or nothing more when repeated, needs no key and leaves no record (IKH-DEF-2).
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
	// A client that goes away neither undoes the work nor frees the key half-way (IKH K-10).
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), g.cfg.Timeout)
	defer cancel()
	now := g.cfg.Now()
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
		// Without the record a repeat cannot be told from a first request: refuse rather than do it twice (EDS T-33).
		g.cfg.Problems.Write(w, r, fmt.Errorf("reserve idempotency key: %w", err))
		return
	}
	if err := g.decided(ctx, s, rec, existing); err != nil {
		if existing == nil {
			g.forget(ctx, rec)
		}
		g.cfg.Problems.Write(w, r, err)
		return
	}
	if existing != nil {
		g.repeat(w, r, rec, existing)
		return
	}
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.first(w, r, rec, next)
}

// guarded reports whether a key counts with the method. PUT is among them since a delivery may be one (IKH K-14).
func guarded(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

// repeat answers a request whose key is taken. Another payload is misuse even while the first is in progress: a 409
// would tell the client to send it again as it is (IKH K-5).
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

// Replay gives a stored answer again.
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

func (g *Guard) first(w http.ResponseWriter, r *http.Request, rec *godwit.IdempotencyRecord, next http.Handler) {
	answer := &recorder{header: http.Header{}}
	if cause := run(answer, r, next); cause != nil {
		g.forget(r.Context(), rec)
		g.cfg.Problems.Write(w, r, cause)
		return
	}
	if storable(answer.status()) {
		g.complete(r.Context(), rec, answer)
	} else {
		g.forget(r.Context(), rec)
	}
	answer.copyTo(w)
}

// run keeps a panic of the handler from leaving its key reserved.
func run(w http.ResponseWriter, r *http.Request, next http.Handler) (cause error) {
	defer func() {
		if v := recover(); v != nil {
			cause = fmt.Errorf("handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	next.ServeHTTP(w, r)
	return nil
}

// storable says whether an answer is the request's result. Success and the handler's own refusals are; what may go
// otherwise next time, and what was refused before the handler, is not (EDS T-3).
func storable(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity:
		return true
	}
	return status >= 200 && status < 400
}

// complete stores the answer before it is written: from then on it is the answer, whether the client got it or not. A
// store that fails here does not take the answer from the client; the key is free again when the lease ends.
func (g *Guard) complete(ctx context.Context, rec *godwit.IdempotencyRecord, answer *recorder) {
	ctx, cancel := g.afterwards(ctx)
	defer cancel()
	expires := g.cfg.Now().Add(g.cfg.TimeScale.Real(g.cfg.Window))
	if err := g.cfg.Store.Complete(ctx, rec.ID, g.seal(rec.ID, answer), expires); err != nil {
		g.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "answer not kept for repeats", slog.Any("error", err))
	}
}

// afterwards gives the writing of the outcome time of its own, since the handler may have used up all of its. It ends with the
// lease, after which another request may take the key.
func (g *Guard) afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Lease-g.cfg.Timeout)
}

func (g *Guard) forget(ctx context.Context, rec *godwit.IdempotencyRecord) {
	ctx, cancel := g.afterwards(ctx)
	defer cancel()
	if err := g.cfg.Store.Forget(ctx, rec.ID); err != nil {
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
