package sender

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/difftest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A rival reads responses by a plain client of net/http, for comparison with a link.
type rival struct {
	sender    *Sender
	transport *http.Transport
	next      *scripted // the connection that the transport gets when it dials
}

const (
	rivalBody   = 200  // cap of a response's body
	rivalHeader = 4000 // cap of a response's header
)

func newRival(t testing.TB) *rival {
	r := &rival{sender: newSender(t, func(c *Config) {
		c.AllowAddresses = append(c.AllowAddresses, prefix("192.0.2.0/24"))
		c.MaxResponseBody, c.MaxResponseHeader = rivalBody, rivalHeader
	})}
	r.transport = &http.Transport{
		MaxResponseHeaderBytes: rivalHeader, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return r.next, nil },
	}
	t.Cleanup(r.transport.CloseIdleConnections)
	log.SetOutput(io.Discard) // net/http's client logs bytes that answer no request
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	return r
}

// A reading is what a client makes of a response.
type reading struct {
	status    int
	proto     string
	header    http.Header
	body      []byte
	capped    bool
	truncated bool // the header came, but not the whole body
	kept      bool // the connection may be used again
}

func (r reading) String() string {
	return fmt.Sprintf("%d %s %q %q capped %v, truncated %v, kept %v", r.status, r.proto, r.header, r.body, r.capped, r.truncated, r.kept)
}

// compare has a link and net/http's client read the same response, and returns how the results differ. They may differ in
// these ways, all on purpose: 101 is a failure of the attempt; and a link does not keep a connection after 421, after a body over
// the cap, or if more has arrived than the response, which net/http notices a moment later.
func (r *rival) compare(text []byte, piece int) error {
	x, kept, left := byLink(r.sender, text, piece)
	ours := reading{status: x.Status, proto: x.Proto, header: x.Header, body: x.Body, capped: x.BodyCapped, kept: kept}
	theirs, err := r.read(text, piece)
	switch {
	case theirs.status == http.StatusSwitchingProtocols:
		theirs.body, theirs.capped, theirs.truncated = nil, false, false
		if x.Failure == nil || x.Failure.Kind != godwit.FailureProtocol || !x.Failure.Sent {
			return fmt.Errorf("response %q in pieces of %d: 101 passed, %+v", text, piece, x.Failure)
		}
	case err != nil: // there is no response
		if x.Failure == nil || !x.Failure.Sent || ours.header != nil || ours.body != nil || kept {
			return fmt.Errorf("response %q in pieces of %d\nlink: %v %+v\nnet/http: %v", text, piece, ours, x.Failure, err)
		}
		return nil
	default:
		ours.truncated = x.Failure != nil
	}
	theirs.kept = theirs.kept && left == 0 && !ours.capped && theirs.status != http.StatusMisdirectedRequest
	if ours.status != theirs.status || ours.proto != theirs.proto || !maps.EqualFunc(ours.header, theirs.header, slices.Equal) ||
		!bytes.Equal(ours.body, theirs.body) || ours.capped != theirs.capped || ours.truncated != theirs.truncated || ours.kept != theirs.kept {
		return fmt.Errorf("response %q in pieces of %d, %d bytes left\n    link: %v %+v\nnet/http: %v", text, piece, left, ours, x.Failure, theirs)
	}
	return nil
}

// read reads a response by net/http's client, up to the cap of the body.
func (r *rival) read(text []byte, piece int) (reading, error) {
	conn := newScripted(text, piece)
	r.next = conn
	kept := false // written by the goroutine that closes the connection later
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{PutIdleConn: func(err error) { kept = err == nil }})
	req := (&http.Request{
		Method: http.MethodPost, URL: rivalURL.url, Host: rivalURL.url.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: 7, Body: body([]byte(`{"n":1}`)),
	}).WithContext(ctx)
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		<-conn.gone
		return reading{}, err
	}
	got := reading{status: resp.StatusCode, proto: resp.Proto, header: resp.Header}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		got.body, got.capped, err = r.sender.readBody(resp.Body)
		got.truncated = err != nil
	}
	resp.Body.Close()
	<-conn.gone
	got.kept = kept
	return got, nil
}

var rivalURL = newDestination(must(http.NewRequest(http.MethodPost, scriptedURL, nil)).URL)

// FuzzLink compares a link with a plain client of net/http, for any bytes that a receiver may send.
func FuzzLink(f *testing.F) {
	for _, text := range responses {
		f.Add([]byte(text), uint16(1))
		f.Add([]byte(text), uint16(4096))
	}
	r := newRival(f)
	f.Fuzz(func(t *testing.T, text []byte, piece uint16) {
		if err := r.compare(text, int(piece)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDifferential is FuzzLink with a generator of its own, for long runs without the cost of coverage.
func TestDifferential(t *testing.T) {
	rival := newRival(t)
	difftest.Run(t, func(r *rand.Rand) error {
		text := generate(r)
		piece := len(text)
		if r.IntN(4) == 0 {
			piece = 1 + r.IntN(100)
		}
		return rival.compare(text, piece)
	})
}

var (
	statusLines = []string{
		"HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 202 Accepted", "HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified", "HTTP/1.1 421 X", "HTTP/1.1 503 X",
		"HTTP/1.0 200 OK", "HTTP/1.1 099 X", "HTTP/1.1 200", "HTTP/1.1 404 ", "HTTP/1.1 999 X", "HTTP/1.1  200 OK", "HTTP/1.2 200 OK", "HTTP/2.0 200 OK", "http/1.1 200 OK",
	}
	interimLines   = []string{"HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints", "HTTP/1.1 199 X", "HTTP/1.1 101 Switching Protocols"}
	responseFields = []string{
		"Content-Type: application/json", "Retry-After: 1", "Connection: keep-alive", "Connection: close", "Connection: Close, x", "Date: x", "X-A:1", "X-A: 2 \t", "Empty:",
		"Set-Cookie: a=b", "Trailer: X-End", "Content-Length: 5", "Content-Length: 0", "Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked",
		"X-Fold: a\r\n b", "Bad Name: x", "No colon", "Upgrade: a", "X-Null: \x00", "Content-Encoding: gzip", "Pragma: no-cache", "Content-Length: +5", "Content-Length: 5, 5",
	}
	responseTokens = []string{
		"\r\n", "\n", "\r", "\r\n\r\n", " ", "\t", ":", ";", "\x00", "\xff", "0", "5", "f", "-1", "0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "100", "101", "204",
		"Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "chunked", "close", ",",
	}
)

// generate makes a response, most often an ordinary one, and changes some bytes of every second.
func generate(r *rand.Rand) []byte {
	text := make([]byte, 0, 512)
	for r.IntN(8) == 0 {
		text = append(append(text, difftest.Pick(r, interimLines)...), "\r\n"...)
		text = append(appendFields(r, text, 1), "\r\n"...)
	}
	text = append(append(text, difftest.Pick(r, statusLines)...), "\r\n"...)
	text = appendFields(r, text, 3)
	body := make([]byte, r.IntN(60))
	if r.IntN(16) == 0 {
		body = make([]byte, 190+r.IntN(20))
	}
	for i := range body {
		body[i] = "abcdef0123456789\r\n;"[r.IntN(19)]
	}
	switch r.IntN(8) {
	case 0: // ends with the connection
		text = append(append(text, "\r\n"...), body...)
	case 1, 2, 3:
		text = appendChunks(r, append(text, "Transfer-Encoding: chunked\r\n\r\n"...), body)
	default:
		text = append(fmt.Appendf(text, "Content-Length: %d\r\n\r\n", len(body)), body...)
	}
	switch r.IntN(16) {
	case 0:
		text = append(text, difftest.Pick(r, responseTokens)...)
	case 1:
		text = text[:r.IntN(len(text))]
	}
	if r.IntN(2) == 0 {
		return difftest.Mutate(r, text, responseTokens)
	}
	return text
}

func appendFields(r *rand.Rand, text []byte, most int) []byte {
	for range r.IntN(most + 1) {
		common := 10
		if r.IntN(8) == 0 {
			common = len(responseFields)
		}
		text = append(append(text, responseFields[r.IntN(common)]...), "\r\n"...)
	}
	return text
}

func appendChunks(r *rand.Rand, text, body []byte) []byte {
	for len(body) > 0 {
		n := 1 + r.IntN(len(body))
		extension := ""
		if r.IntN(8) == 0 {
			extension = difftest.Pick(r, []string{";x=y", ";", " ", "\t;a=\"b\""})
		}
		text = append(append(fmt.Appendf(text, "%x%s\r\n", n, extension), body[:n]...), "\r\n"...)
		body = body[n:]
	}
	text = append(text, "0\r\n"...)
	if r.IntN(8) == 0 {
		text = append(text, difftest.Pick(r, []string{"X-End: 1\r\n", "No colon\r\n", "Content-Length: 5\r\n", strings.Repeat("X-Long: 12345678\r\n", r.IntN(400))})...)
	}
	return append(text, "\r\n"...)
}
