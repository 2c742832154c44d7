package sender

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A scripted connection says its text as soon as the request was written, in pieces, and then ends or stays silent.
type scripted struct {
	net.Conn
	mu     sync.Mutex
	asked  *sync.Cond
	text   []byte
	piece  int
	ready  bool
	closed bool
	gone   chan struct{} // closed with the connection
}

func newScripted(text []byte, piece int) *scripted {
	c := &scripted{text: text, piece: max(piece, 1), gone: make(chan struct{})}
	c.asked = sync.NewCond(&c.mu)
	return c
}

func (c *scripted) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = true
	c.asked.Broadcast()
	return len(p), nil
}

func (c *scripted) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ready && !c.closed {
		c.asked.Wait()
	}
	if c.closed || len(c.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.piece)], c.text)
	c.text = c.text[n:]
	return n, nil
}

func (c *scripted) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		close(c.gone)
	}
	c.closed = true
	c.asked.Broadcast()
	return nil
}
func (c *scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }
func (c *scripted) SetDeadline(time.Time) error      { return nil }
func (c *scripted) SetReadDeadline(time.Time) error  { return nil }
func (c *scripted) SetWriteDeadline(time.Time) error { return nil }

const scriptedURL = "http://192.0.2.1/hook"

// byLink makes the exchange over a link. It returns whether the link was kept, and how many bytes were read beyond the response.
func byLink(s *Sender, text []byte, piece int) (x godwit.Exchange, keep bool, left int) {
	b := newAttemptContext(context.Background(), time.Minute)
	defer b.end()
	at, _ := s.destination(scriptedURL)
	c := newScripted(text, piece)
	l := newLink(c, &socket{Conn: c}, at.origin)
	d := takeScratch()
	defer d.free()
	h := hop{sender: s, request: post(scriptedURL), id: s.shared, destination: at}
	req := h.build(b, d.header, &x)
	whole, err := d.encode(req, at, h.request.Body, false)
	if err != nil {
		panic(err)
	}
	x.Proto = "HTTP/1.1"
	h.exchange(b, d, l, req, whole, &x)
	keep = s.shared.links.n > 0
	s.shared.links.clear(false)
	return x, keep, d.in.Buffered()
}

// byTransport is the same by net/http.
func byTransport(s *Sender, text []byte, piece int) (x godwit.Exchange) {
	b := newAttemptContext(context.Background(), time.Minute)
	defer b.end()
	id := s.newClientID(nil)
	id.transport.DisableKeepAlives = true
	id.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return newWire(newScripted(text, piece), true), nil
	}
	at, _ := s.destination(scriptedURL)
	h := hop{sender: s, request: post(scriptedURL), id: id, destination: at}
	req := h.build(b, http.Header{}, &x)
	h.transport(b, req, &x)
	return x
}

// responses are texts with which fuzzing begins.
var responses = []string{
	ok200, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nall", "HTTP/1.1 200 OK\r\n\r\n", "",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nT: 1\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 X\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 101 X\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n", ok200 + ok200, "HTTP/1.1 20", "SSH-2.0\r\n", "HTTP/2.0 200 OK\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	"HTTP/1.1 304 X\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + strings.Repeat("x", 300),
}

// FuzzResponse reads whatever a receiver may say, by a link and by net/http: both see the same. A link that is kept has
// nothing left on it.
func FuzzResponse(f *testing.F) {
	for _, text := range responses {
		f.Add([]byte(text), uint16(1))
		f.Add([]byte(text), uint16(4096))
	}
	s := newSender(f, func(c *Config) {
		c.AllowAddresses = append(c.AllowAddresses, prefix("192.0.2.0/24"))
		c.MaxResponseBody, c.MaxResponseHeader = 200, 4000
	})
	f.Fuzz(func(t *testing.T, text []byte, piece uint16) {
		ours, keep, _ := byLink(s, text, int(piece))
		theirs := byTransport(s, text, int(piece))
		if ours.Status != theirs.Status || !bytes.Equal(ours.Body, theirs.Body) || ours.BodyCapped != theirs.BodyCapped || ours.Proto != theirs.Proto {
			t.Errorf("link %d %q %v %s\nhttp %d %q %v %s", ours.Status, ours.Body, ours.BodyCapped, ours.Proto, theirs.Status, theirs.Body, theirs.BodyCapped, theirs.Proto)
		}
		if (ours.Failure == nil) != (theirs.Failure == nil) || ours.Failure != nil && *ours.Failure != *theirs.Failure {
			t.Errorf("link %+v\nhttp %+v", ours.Failure, theirs.Failure)
		}
		if keep && (ours.Failure != nil || ours.BodyCapped || ours.Status < 200) {
			t.Errorf("kept after %d, %+v", ours.Status, ours.Failure)
		}
		if keep && int(piece) >= len(text) && !alone(text) { // what comes in a later piece is found out by quiet
			t.Errorf("kept, although something is left of %q", text)
		}
	})
}

// alone says that a text is one final response and nothing else. Found out by reading from its end: without its last byte it
// is no response any more.
func alone(text []byte) bool {
	read := func(text []byte) bool {
		br := bufio.NewReader(bytes.NewReader(text))
		for {
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				return false
			}
			if resp.StatusCode >= 100 && resp.StatusCode < 200 {
				continue
			}
			_, err = io.Copy(io.Discard, resp.Body)
			_, rest := br.ReadByte()
			return err == nil && rest == io.EOF
		}
	}
	return read(text) && !read(text[:len(text)-1])
}

// FuzzEncode writes requests with whatever header and body, and reads them by net/http: one request, the one that was meant.
func FuzzEncode(f *testing.F) {
	f.Add("X-A", "b", []byte("{}"), false)
	f.Add("x-Lower", " trimmed ", []byte{}, true)
	f.Add("User-Agent", "", []byte("x"), false)
	f.Add("X-A\r\nEvil", "a", []byte("x"), false)
	f.Add("X-A", "a\r\n\r\nGET / HTTP/1.1\r\n\r\n", []byte("x"), false)
	f.Add("Transfer-Encoding", "chunked", []byte("x"), false)
	s := newSender(f)
	at, _ := s.destination("http://receiver.test:8080/hook?a=b%20c")
	f.Fuzz(func(t *testing.T, name, value string, payload []byte, last bool) {
		d := takeScratch()
		defer d.free()
		req := &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}, name: {value}}}
		whole, err := d.encode(req, at, payload, last)
		if (err == nil) != (CheckHeader(name, value) == nil) {
			t.Fatalf("encode says %v, CheckHeader %v", err, CheckHeader(name, value))
		}
		if err != nil {
			return
		}
		text := bytes.Clone(d.out)
		if !whole {
			text = append(text, payload...)
		}
		br := bufio.NewReader(bytes.NewReader(text))
		got, err := http.ReadRequest(br)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		body, err := io.ReadAll(got.Body)
		if err != nil || !bytes.Equal(body, payload) || br.Buffered() != 0 {
			t.Errorf("body %q, %v, %d bytes left", body, err, br.Buffered())
		}
		if got.Method != "POST" || got.RequestURI != "/hook?a=b%20c" || got.Host != "receiver.test:8080" || got.Close != last || len(got.TransferEncoding) != 0 {
			t.Errorf("%q", text)
		}
		key := textproto.CanonicalMIMEHeaderKey(name)
		if key != "Content-Type" && got.Header.Get(key) != textproto.TrimString(value) {
			t.Errorf("%s is %q; want %q", name, got.Header.Get(key), value)
		}
	})
}
