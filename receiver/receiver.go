package receiver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// ServeHTTP answers a request. Every request gets exactly one answer (EDS-DEF-3).
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == r.o.DocsPath && (req.Method == http.MethodGet || req.Method == http.MethodHead) {
		r.DocsHandler().ServeHTTP(w, req)
		return
	}
	x := exchange{r: r, req: req, report: Report{Scheme: r.profile.Name}}
	answer := x.answer()
	x.report.Status = answer.Status
	if hook := r.o.Hooks.OnResult; hook != nil {
		tell(func() { hook(x.report) })
	}
	write(w, answer)
	r.purgeNowAndThen()
	if waker, ok := r.o.Inbox.(interface{ Wake() }); ok && x.report.Kind == KindAccepted {
		_ = http.NewResponseController(w).Flush() // the sender gets its answer before the work begins (CCW-RCV-8)
		waker.Wake()
	}
}

// Wait returns when no handler runs any more, including those past their time limit, or when the context ends. Call it after
// the server has stopped.
func (r *Receiver) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { r.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for handlers: %w", context.Cause(ctx))
	}
}

// purgeStep limits the entries that one statement of a purge drops.
const purgeStep = 1000

// Purge drops all expired entries of the store, in small steps, and returns their number. A receiver that gets requests purges
// by itself.
func (r *Receiver) Purge(ctx context.Context) (int, error) {
	now, total := r.o.Clock(), 0
	for {
		step, cancel := context.WithTimeout(ctx, r.o.StoreTimeout)
		n, err := r.store.Purge(step, now, purgeStep)
		cancel()
		total += n
		if err != nil || n < purgeStep {
			return total, err
		}
	}
}

// purgeNowAndThen purges the store, since the receiver manages the whole life of a key (IKH-EXP-3). One request in PurgeEvery
// starts a purge.
func (r *Receiver) purgeNowAndThen() {
	now := r.o.Clock()
	if r.o.PurgeEvery < 0 || now.UnixNano()-r.purged.Load() < int64(r.o.PurgeEvery) || !r.purging.CompareAndSwap(false, true) {
		return
	}
	r.purged.Store(now.UnixNano())
	r.running.Go(func() {
		defer r.purging.Store(false)
		if _, err := r.Purge(context.Background()); err != nil {
			r.failed(err, "purge")
		}
	})
}

// An exchange is a request while it is being answered.
type exchange struct {
	r      *Receiver
	req    *http.Request
	report Report
}

// refusal is the answer to a refused request.
type refusal struct {
	answer Answer
	code   ProblemCode
}

func (e *refusal) Error() string { return string(e.code) }

func (x *exchange) refuse(status int, code ProblemCode, detail string, extra ...string) error {
	return &refusal{x.r.problem(status, code, detail, extra...), code}
}

// unavailable is for internal failures that may be gone at a retry: fail closed (EDS-SEC-RPL-3).
func (x *exchange) unavailable(err error, where string) error {
	x.r.failed(err, where)
	return x.refuse(http.StatusServiceUnavailable, CodeUnavailable, "Unavailable, try again later", "Retry-After", seconds(x.r.o.RetryAfter))
}

// failed reports an internal error.
func (r *Receiver) failed(err error, where string) {
	r.log.Error("webhook receiver: "+where+" failed", "scheme", r.profile.Name, "error", err)
	if hook := r.o.Hooks.OnError; hook != nil {
		tell(func() { hook(err, where) })
	}
}

func (x *exchange) answer() (answer Answer) {
	defer func() {
		if p := recover(); p != nil {
			x.r.failed(panicked(p), "receive")
			x.report.Kind = KindFailed
			answer = x.r.problem(http.StatusInternalServerError, CodeInternal, "Internal error")
		}
	}()
	answer, err := x.process()
	if err == nil {
		return answer
	}
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		x.r.failed(err, "receive")
		refused = &refusal{x.r.problem(http.StatusInternalServerError, CodeInternal, "Internal error"), CodeInternal}
	}
	x.report.Kind, x.report.Code = KindRefused, refused.code
	return refused.answer
}

func panicked(p any) error { return fmt.Errorf("panic: %v\n%s", p, debug.Stack()) }

// process runs the steps in their fixed order.
func (x *exchange) process() (Answer, error) {
	m, err := x.read()
	if err != nil {
		return Answer{}, err
	}
	proof, err := x.authenticate(m)
	if err != nil {
		return Answer{}, err
	}
	if shake := x.r.profile.Handshake; shake != nil {
		if answer, ok := shake(m); ok {
			x.report.Kind, x.report.Principal = KindAccepted, proof.Principal
			return answer, nil
		}
	}
	d, err := x.deliver(m, proof)
	if err != nil {
		return Answer{}, err
	}
	x.report.Principal, x.report.EventID, x.report.EventType = d.Principal, d.EventID, d.EventType
	return x.once(d)
}

// read checks method and size. Nothing else is read before.
func (x *exchange) read() (*Message, error) {
	r, req := x.r, x.req
	if hook := r.o.Hooks.OnReceipt; hook != nil {
		receipt := Receipt{r.profile.Name, req.Method, req.URL.Path, r.clientIP(req)}
		tell(func() { hook(receipt) })
	}
	if !slices.Contains(r.profile.Methods, req.Method) {
		return nil, x.refuse(http.StatusMethodNotAllowed, CodeMethod, "Method not allowed", "Allow", strings.Join(r.profile.Methods, ", "))
	}
	m := &Message{Request: req, URL: r.o.TargetURI(req)}
	if r.profile.Credentials && !r.o.AllowHTTP && !strings.HasPrefix(m.URL, "https://") {
		return nil, x.refuse(http.StatusForbidden, CodeTLSRequired, "Credentials are taken over TLS only")
	}
	if r.tolerance < 0 && (req.Header.Get("Early-Data") == "1" || r.o.EarlyData != nil && r.o.EarlyData(req)) {
		// A key that is new does not exclude a replay of early data (EDS-SEC-RPL-8).
		return nil, x.refuse(http.StatusTooEarly, CodeTooEarly, "Early data is not taken, send it again")
	}
	var err error
	m.Body, err = readBody(req, r.o.MaxBody)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, x.refuse(http.StatusRequestEntityTooLarge, CodeTooLarge, fmt.Sprintf("The payload has more than %d bytes", r.o.MaxBody))
	case err != nil:
		return nil, x.refuse(http.StatusBadRequest, CodePayloadMalformed, "The payload did not arrive in full")
	}
	return m, nil
}

var errTooLarge = errors.New("body is too large")

// readBody reads at most one byte beyond the limit. The announced length determines the first allocation up to a limit, since a
// sender may announce much and send nothing.
func readBody(req *http.Request, limit int64) ([]byte, error) {
	if req.ContentLength > limit {
		return nil, errTooLarge
	}
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	var b bytes.Buffer
	b.Grow(int(min(max(req.ContentLength, 0), 64<<10)) + bytes.MinRead)
	n, err := b.ReadFrom(io.LimitReader(req.Body, min(limit, math.MaxInt64-1)+1))
	if err == nil && n > limit {
		err = errTooLarge
	}
	return b.Bytes(), err
}

// authenticate checks authenticity over the raw bytes, then freshness.
func (x *exchange) authenticate(m *Message) (*Proof, error) {
	r := x.r
	now := r.o.Clock()
	proof, err := r.profile.Authenticate(x.req.Context(), m, Check{Now: now, Tolerance: r.tolerance})
	if err == nil {
		err = x.checkReplay(m, &proof)
	}
	if err == nil {
		return &proof, nil
	}
	if _, ok := errors.AsType[*refusal](err); ok {
		return nil, err
	}
	verdict, ok := errors.AsType[*SignatureError](err)
	if !ok {
		return nil, x.unavailable(err, "authenticate")
	}
	r.notAuthentic(verdict, x.req)
	detail := r.profile.Refusal
	if detail == "" {
		detail = "Not authenticated: " + string(verdict.Reason)
	}
	return nil, x.refuse(http.StatusUnauthorized, CodeUnauthenticated, detail, "Www-Authenticate", r.profile.Challenge)
}

// checkReplay accepts a nonce once. If a scheme has no nonce and keys are not remembered, the signed time with the body takes
// its place (EDS-SEC-RPL-6). Retries are signed anew, so an honest retry has a new nonce.
func (x *exchange) checkReplay(m *Message, p *Proof) error {
	r := x.r
	if r.tolerance < 0 || p.SignedAt.IsZero() {
		return nil
	}
	var value Digest
	switch {
	case p.Nonce != "":
		value = ScopeOf(p.Principal, r.profile.Name+" nonce", p.Nonce)
	case r.o.Dedup.Off:
		d := newDigest()
		d.text(p.Principal)
		d.text(r.profile.Name + " once")
		d.text(p.Once)
		d.bytes(m.Body)
		value = d.sum()
	default:
		return nil
	}
	ctx, cancel := x.storeContext()
	defer cancel()
	fresh, err := r.store.Remember(ctx, value, p.SignedAt.Add(r.tolerance+time.Second), r.o.Clock())
	switch {
	case err != nil:
		return x.unavailable(err, "remember nonce")
	case !fresh:
		return errReplayed
	}
	return nil
}

func (r *Receiver) notAuthentic(verdict *SignatureError, req *http.Request) {
	r.mu.Lock()
	count := r.failures.add(r.o.Clock())
	r.mu.Unlock()
	f := VerificationFailure{
		Scheme: r.profile.Name, Reason: verdict.Reason, Error: verdict.Message, IP: r.clientIP(req),
		Header: sanitized(req.Header), Recent: count,
	}
	r.log.Warn("webhook receiver: verification failed", "scheme", f.Scheme, "reason", string(f.Reason), "error", f.Error,
		"ip", f.IP, "recent", f.Recent, "headers", f.Header)
	if hook := r.o.Hooks.Count; hook != nil {
		tell(func() { hook(MetricVerificationFailed) })
	}
	if hook := r.o.Hooks.OnVerificationFailure; hook != nil {
		tell(func() { hook(f) })
	}
}

func (r *Receiver) clientIP(req *http.Request) string {
	if r.o.ClientIP != nil {
		return r.o.ClientIP(req)
	}
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	return host
}

// deliver checks the syntax of the key and validates the payload.
func (x *exchange) deliver(m *Message, p *Proof) (*Delivery, error) {
	r := x.r
	d, err := newDelivery(&r.profile, m, p, r.o.Key, r.o.Clock())
	if err != nil {
		if fault, ok := errors.AsType[*DeliveryError](err); ok {
			return nil, x.refuse(http.StatusBadRequest, fault.Code, fault.Message)
		}
		return nil, err
	}
	if r.o.Validate != nil {
		if err := r.o.Validate(d); err != nil {
			return nil, x.refuse(http.StatusBadRequest, CodePayloadInvalid, err.Error())
		}
	}
	return d, nil
}

// newToken makes a token that identifies a holder.
func newToken() string { return rand.Text() }

func write(w http.ResponseWriter, a Answer) {
	header := w.Header()
	for name, values := range a.Header {
		header[name] = values
	}
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 && a.Status != http.StatusNoContent {
		_, _ = w.Write(a.Body)
	}
}
