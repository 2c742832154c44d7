package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const defaultUserAgent = "Godwit"

// Send makes one attempt and reports the result. Every failure is in the Exchange.
func (s *Sender) Send(ctx context.Context, r *Request) (x godwit.Exchange) {
	x.Started = s.clock()
	defer func() { x.Duration = max(s.clock().Sub(x.Started), 0) }() // the clock may be set back meanwhile
	x.URL = r.URL
	at, problem := s.destination(r.URL)
	if problem != nil {
		x.Failure = refusedURL(problem)
		return x
	}
	if s.closed.Load() {
		x.Failure = &godwit.Failure{Kind: godwit.FailureInterrupted, Detail: ErrInterrupted.Error()}
		return x
	}
	b := newAttemptContext(ctx, r.Timeout)
	defer b.end()
	defer func() { x.Timing = b.timing }()

	registered := at
	for {
		h := hop{sender: s, request: r, destination: at, otherOrigin: registered.origin != at.origin}
		if !h.otherOrigin {
			h.cert = r.ClientCertificate // a certificate is a credential and stays with its origin (EDS-RED-6)
		}
		h.run(b, &x)
		b.timing.FirstByte = h.firstByte
		if x.Failure != nil || !slices.Contains(r.Follow.Statuses, x.Status) {
			return x
		}
		next, failure := s.follow(r, at.url, len(x.Hops), x.Header)
		if failure != nil {
			x.Failure = failure
			return x
		}
		from := x.URL
		x.Hops = append(x.Hops, godwit.Hop{Status: x.Status, From: from, To: next.String()})
		x.URL, at = next.String(), newDestination(next)
		x.Status, x.Header, x.Body, x.BodyCapped = 0, nil, nil, false
		x.Proto, x.RemoteAddr, x.Reused, x.Sent = "", "", false, nil
	}
}

func refusedURL(problem *URLError) *godwit.Failure {
	kind := godwit.FailureInvalidRequest
	if problem.Problem == ProblemAddress {
		kind = godwit.FailureBlockedAddress
	}
	return &godwit.Failure{Kind: kind, Detail: problem.Error()}
}

// A hop is one request of an attempt: the first one, or one that follows a redirect.
type hop struct {
	sender      *Sender
	request     *Request
	destination *destination
	otherOrigin bool
	cert        *tls.Certificate // used if the server asks for one; nil for none
	id          *clientID
	reused      bool          // the connection
	firstByte   time.Duration // see godwit.Timing
}

// run makes the request and writes the result to x.
func (h *hop) run(b *attemptContext, x *godwit.Exchange) {
	var err error
	if h.id, err = h.sender.clientID(h.cert, h.request.FreshConnection); err != nil {
		x.Failure = &godwit.Failure{Kind: godwit.FailureCredential, Detail: err.Error()}
		return
	}
	defer h.sender.leave(h.id, h.request.FreshConnection)
	if !h.id.usesLinks(h.destination) {
		if req := h.build(b, http.Header{}, x); req != nil {
			h.transport(b, req, x)
			h.keepHeader(req, x)
		}
		return
	}
	d := takeScratch()
	defer d.free()
	req := h.build(b, d.header, x)
	if req == nil {
		return
	}
	defer h.keepHeader(req, x) // before the scratch is freed
	if offer := h.overLink(b, d, req, x); offer != nil {
		defer offer.withdraw()
		req.Header = req.Header.Clone() // the scratch is reused, and net/http may still write after the response
		h.transport(context.WithValue(b, offerKey{}, offer), req, x)
	}
}

// keepHeader copies the header of the request where that is wanted.
func (h *hop) keepHeader(req *http.Request, x *godwit.Exchange) {
	if h.request.KeepHeader || x.Failure != nil || x.Status < 200 || x.Status > 299 {
		x.Sent = req.Header.Clone()
	}
}

// build makes the request with its complete header, or writes to x why there is none. The header is empty and becomes the
// request's.
func (h *hop) build(b *attemptContext, header http.Header, x *godwit.Exchange) *http.Request {
	r := h.request
	for name, values := range r.Header {
		header[name] = slices.Clip(values)
	}
	if h.otherOrigin {
		header.Del("Authorization")
		header.Del("Cookie")
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = userAgent
	}
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	if method == http.MethodConnect || !httpguts.ValidHeaderFieldName(method) {
		x.Failure = &godwit.Failure{Kind: godwit.FailureInvalidRequest, Detail: "method cannot be sent"}
		return nil
	}
	u := *h.destination.url
	req := (&http.Request{
		Method: method, URL: &u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(r.Body)),
	}).WithContext(b)
	if r.Prepare == nil {
		return req
	}
	if err := r.Prepare(req, h.otherOrigin); err != nil {
		x.Failure = &godwit.Failure{Kind: godwit.FailureCredential, Detail: detail(err)}
		if interrupted(b) {
			x.Failure = contextFailure(b, false)
		}
		return nil
	}
	return req
}

var userAgent = []string{defaultUserAgent}

func unsendable(err error) *godwit.Failure {
	return &godwit.Failure{Kind: godwit.FailureInvalidRequest, Detail: detail(err)}
}

var bodyBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads a response body to its end, which shows that it is complete (EDS-NET-2), or to the limit.
func (s *Sender) readBody(from io.Reader) (kept []byte, capped bool, err error) {
	if from == http.NoBody {
		return nil, false, nil
	}
	buf := bodyBuffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= 16<<10 {
			buf.Reset()
			bodyBuffers.Put(buf)
		}
	}()
	limited := io.LimitedReader{R: from, N: s.maxResponseBody + 1}
	_, err = buf.ReadFrom(&limited)
	read := buf.Bytes()
	if int64(len(read)) > s.maxResponseBody {
		return bytes.Clone(read[:s.maxResponseBody]), true, nil
	}
	if len(read) > 0 {
		kept = bytes.Clone(read)
	}
	return kept, false, err
}

// interrupted reports whether the attempt was ended from outside, not by a deadline.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
