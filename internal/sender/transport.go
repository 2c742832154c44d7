package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// maxStale is the number of dead pooled connections after which a request gets a new one.
const maxStale = 3

// A trip is a hop that net/http makes: over HTTP/2, or through a proxy.
type trip struct {
	*hop

	// Set when the request has a connection.
	conn net.Conn
	wire *wire // nil for HTTP/2
	turn uint64

	begin time.Duration // when it had the connection
	first atomic.Int64  // when the first byte of the response came
}

// gotByte is called by net/http, on a goroutine of its own.
func (t *trip) gotByte() { t.first.Store(int64(steady())) }

// transport makes the request by net/http and writes the result to x.
func (h *hop) transport(ctx context.Context, req *http.Request, x *godwit.Exchange) {
	if err := checkHeaders(req.Header); err != nil {
		x.Failure = unsendable(err)
		return
	}
	t := trip{hop: h}
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: t.gotConn, GotFirstResponseByte: t.gotByte}))
	resp, err := t.roundTrip(req)
	if first := time.Duration(t.first.Load()); first > 0 && first >= t.begin {
		h.firstByte = first - t.begin
	}
	t.describe(x)
	if err != nil {
		x.Failure, x.Status = t.failedBeforeResponse(ctx, err)
		return
	}
	x.Status, x.Header, x.Proto = resp.StatusCode, resp.Header, resp.Proto
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		x.Failure = switchedUnasked()
		return
	}
	x.Body, x.BodyCapped, err = h.sender.readBody(resp.Body)
	if err != nil {
		x.Failure = failedInBody(ctx, err, t.wire != nil)
	}
	resp.Body.Close()
	if t.wire != nil {
		if x.Status == http.StatusMisdirectedRequest {
			t.wire.retire() // it leads to the wrong host for the next request as well (EDS-STA-421)
		}
		t.wire.done(t.turn)
	}
}

// body is never nil or http.NoBody, even if it is empty: net/http would then consider the request safe to resend. net/http
// knows that its type is in memory, so header and body leave in one packet.
func body(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// roundTrip sends the request once. If a pooled connection is dead before a byte was written, the request uses another one.
func (t *trip) roundTrip(req *http.Request) (*http.Response, error) {
	id := t.id
	for stale := 0; ; stale++ {
		t.conn, t.wire, t.reused = nil, nil, false
		req = req.WithContext(req.Context())
		req.Body = body(t.request.Body)
		resp, err := id.transport.RoundTrip(req)
		if err == nil || !t.diedUnused() || req.Context().Err() != nil {
			return resp, err
		}
		if stale == maxStale {
			id = t.sender.newFreshClientID(t.cert)
			defer id.CloseIdleConnections()
		}
	}
}

// diedUnused reports whether a pooled connection failed before a byte of this request was written to it.
func (t *trip) diedUnused() bool { return t.wire != nil && t.reused && !t.wire.sent() }

// gotConn is called by net/http, on the goroutine of roundTrip.
func (t *trip) gotConn(info httptrace.GotConnInfo) {
	t.conn, t.reused, t.begin = info.Conn, info.Reused, steady()
	switch c := info.Conn.(type) {
	case *wire:
		t.wire = c
	case *tls.Conn:
		t.wire = nil
		if c.ConnectionState().NegotiatedProtocol != "h2" {
			t.wire, _ = c.NetConn().(*wire) // HTTP/1 over TLS through a proxy
		}
	}
	if t.wire != nil {
		t.turn = t.wire.begin()
		t.id.links.speakHTTP2(t.destination.origin, false) // no longer
	}
}

// describe writes the connection's properties to x.
func (t *trip) describe(x *godwit.Exchange) {
	x.Reused = t.reused
	switch {
	case t.conn == nil:
	case t.wire != nil:
		x.RemoteAddr, x.Proto = t.wire.remote, "HTTP/1.1"
	default:
		x.RemoteAddr, x.Proto = t.conn.RemoteAddr().String(), "HTTP/2.0"
	}
}

// sent reports whether bytes of the request may have reached the receiver. An HTTP/2 connection is shared, so there it is true
// once the request has the connection.
func (t *trip) sent() bool {
	if t.wire != nil {
		return t.wire.sent()
	}
	return t.conn != nil
}
