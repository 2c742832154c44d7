package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const (
	defaultUserAgent = "Godwit"
	// maxStale is how many dead pooled connections a request may meet before it gets one of its own.
	maxStale = 3
)

// Send makes one attempt and reports what it saw. Every failure is in the Exchange; there is no error beside it.
func (s *Sender) Send(ctx context.Context, r *Request) (x godwit.Exchange) {
	x.Started = s.clock()
	defer func() { x.Duration = s.clock().Sub(x.Started) }()
	x.URL = r.URL
	at, problem := s.parseURL(r.URL)
	if problem != nil {
		x.Failure = refusedURL(problem)
		return x
	}
	if s.closed.Load() {
		x.Failure = &godwit.Failure{Kind: godwit.FailureInterrupted, Detail: ErrInterrupted.Error()}
		return x
	}
	transport, done, err := s.transport(r)
	if err != nil {
		x.Failure = &godwit.Failure{Kind: godwit.FailureCredential, Detail: err.Error()}
		return x
	}
	defer done()
	ctx, cancel := attemptContext(ctx, r.Timeout)
	defer cancel()

	registered := at
	for {
		h := hop{sender: s, request: r, transport: transport, url: at, otherOrigin: !sameOrigin(registered, at)}
		h.run(ctx, &x)
		if x.Failure != nil || !slices.Contains(r.Follow.Statuses, x.Status) {
			return x
		}
		next, failure := s.follow(r, at, len(x.Hops), x.Header)
		if failure != nil {
			x.Failure = failure
			return x
		}
		from := x.URL
		x.Hops = append(x.Hops, godwit.Hop{Status: x.Status, From: from, To: next.String()})
		x.URL, at = next.String(), next
		x.Status, x.Header, x.Body, x.BodyCapped = 0, nil, nil, false
		x.Proto, x.RemoteAddr, x.Reused = "", "", false
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
	transport   *http.Transport
	url         *url.URL
	otherOrigin bool

	// Set when the request has got a connection.
	conn   net.Conn
	wire   *wire // nil for HTTP/2
	turn   uint64
	reused bool
}

// run makes the request and writes what it saw to x.
func (h *hop) run(ctx context.Context, x *godwit.Exchange) {
	req, failure := h.build(ctx)
	if failure != nil {
		x.Failure = failure
		return
	}
	resp, err := h.roundTrip(req)
	h.describe(x)
	if err != nil {
		x.Failure, x.Status = h.failedBeforeResponse(ctx, err)
		return
	}
	x.Status, x.Header, x.Proto = resp.StatusCode, resp.Header, resp.Proto
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// We never ask to switch, so this is no answer to a delivery (EDS-STA-1xx).
		resp.Body.Close()
		x.Failure = &godwit.Failure{Kind: godwit.FailureProtocol, Sent: true, Detail: "receiver switched protocols unasked"}
		return
	}
	x.Body, x.BodyCapped, err = h.sender.readBody(resp.Body)
	if err != nil {
		x.Failure = h.failedInBody(ctx, err)
	}
	resp.Body.Close()
	if h.wire != nil {
		if x.Status == http.StatusMisdirectedRequest {
			h.wire.retire() // it leads to the wrong place for the next request, too (EDS-STA-421)
		}
		h.wire.done(h.turn)
	}
}

// build makes the request up to the last header.
func (h *hop) build(ctx context.Context) (*http.Request, *godwit.Failure) {
	r := h.request
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if h.otherOrigin {
		header.Del("Authorization")
		header.Del("Cookie")
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = []string{defaultUserAgent}
	}
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	trace := &httptrace.ClientTrace{GotConn: h.gotConn}
	req := (&http.Request{
		Method: method, URL: h.url, Host: h.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(r.Body)),
		Body:          body(r.Body),
	}).WithContext(httptrace.WithClientTrace(ctx, trace))
	if r.Prepare != nil {
		if err := r.Prepare(req, h.otherOrigin); err != nil {
			if interrupted(ctx) {
				return nil, contextFailure(ctx, false)
			}
			return nil, &godwit.Failure{Kind: godwit.FailureCredential, Detail: detail(err)}
		}
	}
	if !httpguts.ValidHeaderFieldName(method) || method == http.MethodConnect {
		return nil, &godwit.Failure{Kind: godwit.FailureInvalidRequest, Detail: "method cannot be sent"}
	}
	if err := checkHeaders(req.Header); err != nil {
		return nil, &godwit.Failure{Kind: godwit.FailureInvalidRequest, Detail: detail(err)}
	}
	return req, nil
}

// body is never nil or http.NoBody, also when it is empty: net/http would take that for leave to send the request again. Its
// type is one net/http knows to be in memory, so that header and body leave in one packet.
func body(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// roundTrip puts the request on the wire once. A pooled connection may turn out dead before a byte was written; then the
// request, which has not left, takes another one.
func (h *hop) roundTrip(req *http.Request) (*http.Response, error) {
	transport := h.transport
	for stale := 0; ; stale++ {
		h.conn, h.wire, h.reused = nil, nil, false
		resp, err := transport.RoundTrip(req)
		if err == nil || !h.diedUnused() || req.Context().Err() != nil {
			return resp, err
		}
		if stale == maxStale {
			transport = h.sender.newFreshTransport(h.request.ClientCertificate)
			defer transport.CloseIdleConnections()
		}
		req = req.WithContext(req.Context())
		req.Body = body(h.request.Body)
	}
}

// diedUnused says that a pooled connection failed and that nothing of this request was written to it.
func (h *hop) diedUnused() bool { return h.wire != nil && h.reused && !h.wire.sent() }

// gotConn is called by net/http, on the goroutine of roundTrip.
func (h *hop) gotConn(info httptrace.GotConnInfo) {
	h.conn, h.reused = info.Conn, info.Reused
	switch c := info.Conn.(type) {
	case *wire:
		h.wire = c
	case *tls.Conn:
		h.wire = nil
		if c.ConnectionState().NegotiatedProtocol != "h2" {
			h.wire, _ = c.NetConn().(*wire) // HTTP/1 over TLS through a proxy
		}
	}
	if h.wire != nil {
		h.turn = h.wire.begin()
	}
}

// describe notes the connection.
func (h *hop) describe(x *godwit.Exchange) {
	x.Reused = h.reused
	switch {
	case h.conn == nil:
	case h.wire != nil:
		x.RemoteAddr, x.Proto = h.wire.remote, "HTTP/1.1"
	default:
		x.RemoteAddr, x.Proto = h.conn.RemoteAddr().String(), "HTTP/2.0"
	}
}

// sent says whether bytes of the request may have reached the receiver. An HTTP/2 connection is shared, so there the answer
// is yes from the moment it was taken.
func (h *hop) sent() bool {
	if h.wire != nil {
		return h.wire.sent()
	}
	return h.conn != nil
}

var bodyBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads a response body to its end, which alone shows that it is complete (EDS-NET-2), or to the cap.
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

// interrupted says that the attempt was ended from outside, not by a deadline.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
