package inbound

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/cloudevents"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/receiver"
)

// An exchange is one request from an upstream.
type exchange struct {
	*server
	w http.ResponseWriter
	r *http.Request

	src       *godwit.Source // nil until the source is found
	gate      *source.Gate
	body      []byte
	proof     receiver.Proof
	authentic bool
	reason    string // why authentication failed
}

// serve runs the checks in a fixed order: it reads no body before the source is known, trusts nothing before authentication,
// and stores nothing before the key is valid (EDS T-20).
func (x *exchange) serve() error {
	if err := x.find(); err != nil {
		return err
	}
	release, err := x.read()
	if err != nil {
		return err
	}
	defer release()
	m := &receiver.Message{Request: x.r, URL: x.url(), Body: x.body}
	if err := x.authenticate(m); err != nil {
		return err
	}
	if answer, ok := x.gate.Handshake(m); ok {
		x.succeeded(verdictHandshake)
		x.write(answer)
		return nil
	}
	if x.src.Settings.CommandsAs != "" {
		return x.command(m)
	}
	event, err := x.event(m)
	if err != nil {
		return err
	}
	return x.publish(event, release)
}

func (x *exchange) find() error {
	src, err := x.cfg.Sources.At(x.r.Context(), strings.TrimPrefix(x.r.URL.Path, Prefix))
	if errors.Is(err, store.ErrNotFound) {
		return problem.NotFound.With("there is no such source")
	}
	if err != nil {
		return err
	}
	x.src = src
	if src.Status == godwit.SourcePaused {
		return problem.Unavailable.With("the source is paused")
	}
	if x.gate, err = x.cfg.Sources.Gate(src); err != nil {
		x.cfg.Log.Error("source cannot verify", "source", src.ID.String(), "error", err)
		return problem.Unavailable.With("the source cannot verify deliveries now")
	}
	if !slices.Contains(x.gate.Methods(), x.r.Method) {
		allow := strings.Join(x.gate.Methods(), ", ")
		return problem.MethodNotAllowed.With("this source takes %s", allow).WithHeader("Allow", allow)
	}
	if x.r.Header.Get("Early-Data") == "1" {
		return problem.TooEarly.With("")
	}
	return nil
}

// read reads the body. release gives its share of the quota back; further calls do nothing.
func (x *exchange) read() (release func(), err error) {
	limit := x.cfg.Intake.MaxPayload()
	size, err := x.cfg.Bodies.AcquireBody(x.r, x.src.TenantID, limit)
	if err != nil {
		return nil, err
	}
	held := true
	release = func() {
		if held {
			held = false
			x.cfg.Bodies.Release(x.src.TenantID, size)
		}
	}
	if x.body, err = httpapi.ReadBody(x.w, x.r, limit); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// url returns the URL that the upstream used.
func (x *exchange) url() string {
	target := x.r.RequestURI
	if !strings.HasPrefix(target, "/") {
		target = x.r.URL.RequestURI()
	}
	if x.cfg.PublicURL != "" {
		return x.cfg.PublicURL + target
	}
	scheme := "http://"
	if x.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + x.r.Host + target
}

// authenticate verifies the sender and the freshness of the request, and rejects a replayed one.
func (x *exchange) authenticate(m *receiver.Message) error {
	if x.gate.InTheClear() && x.r.TLS == nil && !strings.HasPrefix(x.cfg.PublicURL, "https://") && !x.cfg.AllowHTTP {
		return problem.Forbidden.With("a credential in the request needs https") // EDS T-37
	}
	now := x.cfg.Clock.Now()
	proof, err := x.gate.Authenticate(x.r.Context(), m, now)
	if verdict := (*receiver.SignatureError)(nil); errors.As(err, &verdict) {
		return x.notAuthentic(string(verdict.Reason), verdict.Message)
	}
	if err != nil {
		x.cfg.Log.Error("verify delivery", "source", x.src.ID.String(), "error", err)
		return problem.Unavailable.With("the delivery cannot be verified now")
	}
	x.proof, x.authentic = proof, true
	if proof.Nonce == "" {
		return nil
	}
	// A nonce belongs to one attempt; a retry has a new one (EDS-SEC-RPL-4).
	seen, err := x.remember("nonce", proof.Nonce, [32]byte{})
	switch {
	case err != nil:
		return fmt.Errorf("remember nonce: %w", err) // fail closed
	case seen != nil:
		return x.notAuthentic(string(receiver.ReasonReplayed), "the request was seen before")
	}
	return nil
}

// remember stores a value of a signed attempt for as long as its timestamp is accepted, and reports whether it was stored
// before.
func (x *exchange) remember(kind, value string, fingerprint [32]byte) (*godwit.IdempotencyRecord, error) {
	now := x.cfg.Clock.Now()
	return x.cfg.Store.Reserve(x.r.Context(), &godwit.IdempotencyRecord{
		ID: sha256.Sum256([]byte(kind + "\x00" + x.src.ID.String() + "\x00" + value)), TenantID: x.src.TenantID, Fingerprint: fingerprint,
		CreatedAt: now, ExpiresAt: now.Add(2*source.Tolerance + time.Second),
	})
}

func (x *exchange) notAuthentic(reason, message string) error {
	x.reason = reason
	return problem.NotAuthentic.With("%s", message).WithHeader("WWW-Authenticate", x.gate.Challenge())
}

// event builds the event: its key, its type and the forwarded header fields.
func (x *exchange) event(m *receiver.Message) (*intake.Event, error) {
	contentType, err := intake.MediaType(x.r.Header)
	if err != nil {
		return nil, err
	}
	e := &intake.Event{
		ContentType: contentType, Body: x.body, Origin: x.gate.Origin(&x.proof), Received: x.body, ReceivedType: contentType,
	}
	if e.Received == nil {
		e.Received = []byte{} // an empty payload is valid
	}
	id, wrong := x.gate.Identify(m, &x.proof)
	var field *godwit.KeptHeader
	if e.Key, field, err = x.key(e.Origin, &id, wrong); err != nil {
		return nil, err
	}
	via, err := x.via()
	if err != nil {
		return nil, err
	}
	ce, bad := cloudevents.Read(x.r.Header, x.body)
	if bad != nil {
		return nil, problem.InvalidRequest.In(bad.Field, "%s", bad.Detail)
	}
	if ce != nil {
		e.Payload, e.PayloadType = ce.Data, ce.DataType
	}
	e.Type = x.gate.EventType(m, &x.proof, &id, ce)
	if refusal := (*problem.Problem)(nil); errors.As(intake.CheckType(e.Type), &refusal) {
		return nil, problem.InvalidRequest.In("type", "the event's type cannot be used: it %s; see the source's event_type", refusal.Errors[0].Detail)
	}
	if e.KeptHeaders, bad = x.gate.KeptHeaders(x.r.Header, ce); bad != nil {
		return nil, problem.InvalidRequest.In(bad.Field, "%s", bad.Detail)
	}
	if field != nil {
		e.KeptHeaders = append(e.KeptHeaders, *field)
	}
	e.KeptHeaders = append(e.KeptHeaders, via)
	return e, nil
}

func (x *exchange) write(a receiver.Answer) {
	for name, values := range a.Header {
		x.w.Header()[name] = values
	}
	x.w.WriteHeader(a.Status)
	_, _ = x.w.Write(a.Body) // the upstream may have disconnected
}

// unhurried returns the request's context without its cancellation: the server finishes work that has begun even if the
// upstream disconnects.
func (x *exchange) unhurried() context.Context { return context.WithoutCancel(x.r.Context()) }
