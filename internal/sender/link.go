package sender

import (
	"bufio"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"time"
)

// A link is a connection to a receiver that carries HTTP/1.1, one request at a time, written and read by the attempt's
// goroutine. net/http has two goroutines for each connection and passes every request through them, which costs more than half
// of the CPU time of a small request.
type link struct {
	conn   net.Conn // socket, or TLS over it
	socket *socket
	origin string
	remote string
	cut    func() // closes at once; any goroutine may call it

	// Of the current request.
	written int64         // bytes of it that were written
	hungUp  bool          // writing failed: the peer has closed, perhaps after a response
	start   start         // of the response
	limit   int64         // bytes that may still be read
	ended   bool          // reading has failed or reached the end
	late    bool          // the reason was the deadline
	first   time.Duration // when the first byte of the response came; 0: none has

	// While the link is idle, guarded by the mutex of its links.
	since        time.Time
	idle         bool
	older, newer *link

	glimpse [1]byte
}

func newLink(conn net.Conn, s *socket, origin string) *link {
	return &link{conn: conn, socket: s, origin: origin, remote: s.RemoteAddr().String(), cut: func() { s.Close() }}
}

// errQuiet says that the connection is open and nothing has arrived on it. crypto/tls takes it for a temporary error, after
// which reading may continue.
var errQuiet net.Error = quietError{}

type quietError struct{}

func (quietError) Error() string   { return "nothing has arrived" }
func (quietError) Timeout() bool   { return true }
func (quietError) Temporary() bool { return true }

// quiet reports whether an idle link can take a request: it is open, and no unsolicited bytes have arrived. Under TLS it
// processes other records, such as session tickets.
func (l *link) quiet() bool {
	l.socket.noWait = true
	n, err := l.conn.Read(l.glimpse[:])
	l.socket.noWait = false
	return n == 0 && err == errQuiet
}

// begin starts a request.
func (l *link) begin(deadline time.Time, maxHeader int64) {
	l.written, l.hungUp = 0, false
	l.start, l.ended, l.late, l.first = start{}, false, false, 0
	l.limit = maxHeader
	_ = l.socket.SetDeadline(deadline) // fails only on a closed connection, on which writing fails as well
}

func (l *link) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	n, err := l.conn.Write(p)
	l.written += int64(n)
	if err != nil {
		l.hungUp = true
	}
	return err
}

// errHeaderTooLarge ends a response whose header exceeds the limit.
var errHeaderTooLarge = errors.New("response header is too large")

// Read is for the reader of the response.
func (l *link) Read(p []byte) (int, error) {
	if l.limit <= 0 {
		return 0, errHeaderTooLarge
	}
	if int64(len(p)) > l.limit {
		p = p[:l.limit]
	}
	n, err := l.conn.Read(p)
	if n > 0 && l.first == 0 {
		l.first = steady()
	}
	l.limit -= int64(n)
	l.start.add(p[:n])
	if err != nil {
		l.ended = true
		l.late = errors.Is(err, os.ErrDeadlineExceeded) // checked here: the parser of the response may report another error
	}
	return n, err
}

// response reads up to the body of the final response. It skips interim responses, which count towards the limit. 101 is final,
// as in net/http.
func (l *link) response(br *bufio.Reader, req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(br, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			l.limit = math.MaxInt64 // the body has its own limit
			return resp, nil
		}
	}
}

// seen returns what is known of the link without a response.
func (l *link) seen() seen {
	s := seen{sent: l.written > 0, cut: l.ended}
	s.line, s.status = l.start.line()
	return s
}

// close closes the link by its protocol, without waiting: TLS would wait five seconds to send its farewell to a peer that reads
// nothing. No other goroutine may use the link.
func (l *link) close() {
	l.socket.noWait = true
	l.conn.Close()
}

// dialLink connects to a destination. If the receiver chose HTTP/2, it returns the connection instead of a link.
func (c *clientID) dialLink(b *attemptContext, p *destination) (*link, *tls.Conn, error) {
	conn, err := c.dialer.dialTimed(b, "tcp", p.addr, &b.timing)
	if err != nil {
		return nil, nil, err
	}
	s := newSocket(conn)
	if s == nil {
		conn.Close()
		return nil, nil, &dialError{err: errors.New("connection has no file descriptor")}
	}
	if !p.secure {
		return newLink(s, s, p.origin), nil, nil
	}
	begin := steady()
	secure, err := c.dialer.handshake(b, s, p.addr, c.tls)
	b.timing.TLS += steady() - begin
	switch {
	case err != nil:
		return nil, nil, err
	case speaksHTTP2(secure):
		return nil, secure, nil
	}
	return newLink(secure, s, p.origin), nil, nil
}
