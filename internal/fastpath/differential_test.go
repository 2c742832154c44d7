package fastpath

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memConn is a connection in memory. It delivers its text in pieces and then ends; it never waits.
type memConn struct {
	text   []byte
	piece  int
	out    []byte
	closed bool
}

func newMemConn(text []byte, piece int) *memConn {
	return &memConn{text: text, piece: max(piece, 1)}
}

func (c *memConn) Read(p []byte) (int, error) {
	if len(c.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.piece)], c.text)
	c.text = c.text[n:]
	return n, nil
}

func (c *memConn) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	return len(p), nil
}

func (c *memConn) Close() error {
	c.closed = true
	return nil
}

var memAddr net.Addr = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}

func (c *memConn) CloseWrite() error                 { return nil }
func (c *memConn) ReadFrom(io.Reader) (int64, error) { return 0, errors.ErrUnsupported }
func (c *memConn) LocalAddr() net.Addr               { return memAddr }
func (c *memConn) RemoteAddr() net.Addr              { return memAddr }
func (c *memConn) SetDeadline(time.Time) error       { return nil }
func (c *memConn) SetReadDeadline(time.Time) error   { return nil }
func (c *memConn) SetWriteDeadline(time.Time) error  { return nil }

// memListener hands connections to net/http's server.
type memListener struct{ conns chan net.Conn }

func (l memListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l memListener) Close() error   { return nil }
func (l memListener) Addr() net.Addr { return memAddr }

// twins serves the same handler by the fast path and by net/http.
type twins struct {
	listener memListener
	fast     *Server
	over     chan struct{} // net/http is done with a connection
	seen     []byte        // what the handler saw since it was last reset
}

func newTwins(t testing.TB) *twins {
	w := &twins{listener: memListener{make(chan net.Conn)}, over: make(chan struct{})}
	w.fast = New(nil, Config{
		Handler: w, Hot: []string{"/hot"}, Context: context.Background(), Clock: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	w.fast.passed = make(chan net.Conn, 1)
	server := &http.Server{Handler: w, ErrorLog: log.New(io.Discard, "", 0), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			w.over <- struct{}{}
		}
	}}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(w.listener) }()
	t.Cleanup(func() { close(w.listener.conns); <-done; server.Close() })
	return w
}

// byNetHTTP returns what net/http answers on a connection, and what the handler saw.
func (w *twins) byNetHTTP(c net.Conn, m *memConn) (answer, seen []byte) {
	w.seen = nil
	w.listener.conns <- c
	<-w.over
	return m.out, w.seen
}

// compare serves a stream of bytes by both and returns how their answers differ.
func (w *twins) compare(text []byte, piece int) error {
	w.seen = nil
	fast := newMemConn(text, piece)
	c := &conn{server: w.fast, tcp: fast, remote: memAddr.String()}
	c.serve()
	seen := w.seen
	select {
	case handed := <-w.fast.passed:
		passed := handed.(*passedConn)
		if len(fast.out) == 0 && len(seen) == 0 { // untouched: net/http reads the same bytes as without the fast path
			if !bytes.Equal(append(passed.rest[:len(passed.rest):len(passed.rest)], fast.text...), text) {
				return fmt.Errorf("net/http gets %q and %q of %q", passed.rest, fast.text, text)
			}
			return nil
		}
		_, later := w.byNetHTTP(passed, fast)
		seen = append(seen, later...)
	default:
		if !fast.closed {
			return fmt.Errorf("neither closed nor handed over: %q", text)
		}
	}
	plain := newMemConn(text, piece)
	answer, plainSeen := w.byNetHTTP(plain, plain)
	if !bytes.Equal(seen, plainSeen) {
		return fmt.Errorf("stream %q in pieces of %d\nfast path: handler saw %s\n net/http: handler saw %s", text, piece, seen, plainSeen)
	}
	if got, want := comparable(fast.out, answer); !bytes.Equal(got, want) {
		return fmt.Errorf("stream %q in pieces of %d\nfast path: %q\n net/http: %q", text, piece, got, want)
	}
	return nil
}

// comparable removes the two differences that answers may have: the time in Date, and chunks in place of a Content-Length.
func comparable(fast, plain []byte) (a, b []byte) {
	a, b = maskDates(fast), maskDates(plain)
	if bytes.Contains(b, []byte("\r\nTransfer-Encoding: chunked\r\n")) {
		return unchunk(a), unchunk(b)
	}
	return a, b
}

func maskDates(out []byte) []byte {
	name, zone := []byte("\r\nDate: "), []byte(" GMT\r\n")
	for at := 0; ; {
		i := bytes.Index(out[at:], name)
		if i < 0 {
			return out
		}
		at += i + len(name)
		if end := at + len(http.TimeFormat) - len(" GMT"); len(out) > end && bytes.HasPrefix(out[end:], zone) {
			clear(out[at:end])
		}
	}
}

// unchunk decodes chunked responses of a stream, and moves the Content-Length of each response to the end of its header.
func unchunk(out []byte) (plain []byte) {
	for len(out) > 0 {
		head, rest, found := bytes.Cut(out, headEnd)
		if !found {
			return append(plain, out...)
		}
		length, chunked := -1, false
		for line := range bytes.SplitSeq(head, []byte("\r\n")) {
			name, value, _ := strings.Cut(string(line), ": ")
			switch {
			case name == "Content-Length":
				length, _ = strconv.Atoi(value)
			case name == "Transfer-Encoding" && value == "chunked":
				chunked = true
			default:
				plain = append(append(plain, line...), "\r\n"...)
			}
		}
		var body []byte
		if chunked {
			body, rest = chunks(rest)
			length = len(body)
		} else {
			n := min(max(length, 0), len(rest))
			body, rest = rest[:n], rest[n:]
		}
		plain = append(fmt.Appendf(plain, "Content-Length: %d\r\n\r\n", length), body...)
		out = rest
	}
	return plain
}

func chunks(text []byte) (body, rest []byte) {
	for {
		line, after, _ := bytes.Cut(text, []byte("\r\n"))
		n, err := strconv.ParseInt(string(line), 16, 32)
		if err != nil || n == 0 || int(n)+2 > len(after) {
			return body, bytes.TrimPrefix(after, []byte("\r\n"))
		}
		body, text = append(body, after[:n]...), after[n+2:]
	}
}

// ServeHTTP does what the letters of the query say, and notes what it sees of the request. It keeps clear of the differences
// that the package doc names.
func (w *twins) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.note(r)
	written := 0
	write := func(text string) {
		n, err := io.WriteString(rw, text)
		written += n
		w.seen = fmt.Appendf(w.seen, " wrote %d %v", n, err)
	}
	h := rw.Header()
	for i, op := range []byte(r.URL.RawQuery) {
		late := written > 1000 // net/http may have sent the header by now
		switch {
		case op >= '0' && op <= '9':
			rw.WriteHeader([]int{200, 201, 202, 204, 304, 400, 413, 499, 503, 600}[op-'0'])
		case op == 'w':
			write("some text")
		case op == 'H':
			write("<html>")
		case op == 'z':
			write("")
		case op == 'W':
			write(long)
		case op == 'h':
			h.Add("X-Handler", " n "+strconv.Itoa(i))
		case op == 'b':
			h["X-Break"], h["X Bad"], h["x-lower"] = []string{"a\r\nb"}, []string{"x"}, []string{"1", "2"}
		case op == 't':
			h.Set("Content-Type", "application/json")
		case op == 'T':
			h["Content-Type"] = nil
		case op == 'e':
			h.Set("Content-Encoding", "x")
		case op == 'd':
			h.Set("Date", "never")
		case op == 'l':
			h.Set("Content-Length", "9")
		case op == 'L':
			h.Set("Content-Length", "x")
		case op == 'k':
			h.Set("Connection", "keep-alive")
		case op == 'x':
			h.Set("Connection", "close")
		case op == 'X':
			h.Set("Connection", "a, close")
		case op == 'D':
			clear(h)
		case late:
		case op == 'r':
			b, err := io.ReadAll(r.Body)
			w.seen = fmt.Appendf(w.seen, " read %q %v", b, err)
		case op == 'p':
			var (
				p   [3]byte
				n   int
				err error
			)
			for n < len(p) && err == nil { // how many bytes a single Read returns is not compared
				var k int
				k, err = r.Body.Read(p[n:])
				n += k
			}
			w.seen = fmt.Appendf(w.seen, " read %q %v", p[:n], err)
		case op == 'c':
			w.seen = fmt.Appendf(w.seen, " close %v", r.Body.Close())
		case op == 'R':
			r.Body = io.NopCloser(r.Body)
		case op == 'i':
			rw.WriteHeader(1000)
		case op == 'P':
			panic("on purpose")
		case op == 'A':
			panic(http.ErrAbortHandler)
		}
	}
}

// The letters that ServeHTTP knows. Panics are rare in generated requests: they are slow, and end the connection.
const (
	ops      = "wwHzWhbtTedlLkxXDrrrrrrpcR"
	statuses = "0123456789"
	panics   = "iPA"
)

var long = strings.Repeat("0123456789", 300)

// note appends the request to what was seen.
func (w *twins) note(r *http.Request) {
	out := w.seen
	for _, text := range []string{
		"\n", r.Method, r.RequestURI, r.URL.Path, r.URL.RawQuery, r.URL.Fragment, r.URL.Host, r.Proto, r.Host, r.RemoteAddr,
		strconv.FormatInt(r.ContentLength, 10), strconv.FormatBool(r.Close), strconv.FormatBool(r.Body == http.NoBody),
		strconv.Itoa(len(r.TransferEncoding) + len(r.Trailer)), r.Pattern,
	} {
		out = append(append(out, text...), '|')
	}
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(append(out, name...), '=')
		for _, value := range r.Header[name] {
			out = append(append(out, value...), ';')
		}
	}
	w.seen = out
}

// The fast path answers any stream of bytes as net/http does.
func TestAnswersAsNetHTTP(t *testing.T) {
	w := newTwins(t)
	for _, text := range seeds {
		for piece := range 64 {
			if err := w.compare([]byte(text), piece); err != nil {
				t.Error(err)
			}
		}
		if err := w.compare([]byte(text), len(text)); err != nil {
			t.Error(err)
		}
	}
}
