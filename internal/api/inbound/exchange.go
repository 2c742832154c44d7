package inbound

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/cloudevents"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/receiver"
)

// An exchange is one delivery on its way in.
type exchange struct {
	*server
	w http.ResponseWriter
	r *http.Request

	src    *godwit.Source // nil until it is found
	gate   *source.Gate
	body   []byte
	proof  receiver.Proof
	reason string // why it is not authentic
}

// serve takes the steps in their fixed order: nothing is read before the source is known, nothing believed before it is
// authentic, nothing stored before the key is good (EDS T-20).
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
	pub, err := x.publication(m)
	if err != nil {
		return err
	}
	return x.publish(pub, release)
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

// read reads the body. The release gives its part of the quota back, once.
func (x *exchange) read() (release func(), err error) {
	limit := x.cfg.MaxBody
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

// url is the address as the upstream used it.
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

// authenticate verifies who sends, that it is fresh, and that it was not seen before.
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
	x.proof = proof
	if proof.Nonce == "" {
		return nil
	}
	// A nonce is of one attempt; a retry has another (EDS-SEC-RPL-4).
	seen, err := x.remember("nonce", proof.Nonce, [32]byte{})
	switch {
	case err != nil:
		return fmt.Errorf("remember nonce: %w", err) // fail closed
	case seen != nil:
		return x.notAuthentic(string(receiver.ReasonReplayed), "the request was seen before")
	}
	return nil
}

// remember keeps something of a signed attempt for as long as its time would pass, or tells that it is known.
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

// publication makes the event: its key, its type, what goes along.
func (x *exchange) publication(m *receiver.Message) (*engine.Publication, error) {
	contentType, err := mediaType(x.r)
	if err != nil {
		return nil, err
	}
	pub := &engine.Publication{ContentType: contentType, Body: x.body, Origin: x.gate.Origin(&x.proof)}
	id, wrong := x.gate.Identify(m, &x.proof)
	var field *godwit.KeptHeader
	if pub.Key, field, err = x.key(pub.Origin, &id, wrong); err != nil {
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
	pub.Type = x.gate.EventType(m, &x.proof, &id, ce)
	if why := godwit.ValidEventType(pub.Type); why != "" {
		return nil, problem.InvalidRequest.In("type", "the event's type cannot be told: it %s; see the source's event_type", why)
	}
	if pub.KeptHeaders, bad = x.gate.KeptHeaders(x.r.Header, ce); bad != nil {
		return nil, problem.InvalidRequest.In(bad.Field, "%s", bad.Detail)
	}
	if field != nil {
		pub.KeptHeaders = append(pub.KeptHeaders, *field)
	}
	pub.KeptHeaders = append(pub.KeptHeaders, via)
	return pub, nil
}

// mediaType is word for word what the endpoints get (EDS-MTH-4).
func mediaType(r *http.Request) (string, error) {
	values := r.Header["Content-Type"]
	if len(values) != 1 || values[0] == "" || len(values[0]) > godwit.MaxContentTypeSize {
		return "", problem.UnsupportedMediaType.In("Content-Type", "must say what the payload is; endpoints get it word for word")
	}
	for i := range len(values[0]) {
		if c := values[0][i]; c < ' ' || c > '~' {
			return "", problem.UnsupportedMediaType.In("Content-Type", "must be printable ASCII")
		}
	}
	media, _, err := mime.ParseMediaType(values[0])
	if kind, sub, ok := strings.Cut(media, "/"); err != nil || !ok || kind == "" || sub == "" || strings.Contains(media, "*") {
		return "", problem.UnsupportedMediaType.In("Content-Type", "is not a media type")
	}
	return values[0], nil
}

func (x *exchange) write(a receiver.Answer) {
	for name, values := range a.Header {
		x.w.Header()[name] = values
	}
	x.w.WriteHeader(a.Status)
	_, _ = x.w.Write(a.Body) // the upstream may have gone
}

// unhurried is the request's context without its end: what was begun is finished, whoever hangs up.
func (x *exchange) unhurried() context.Context { return context.WithoutCancel(x.r.Context()) }
