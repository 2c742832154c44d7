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

// A link is a connection to a receiver that carries HTTP/1.1, one request at a time, written and read by the goroutine of
// the attempt. net/http has two goroutines on each connection and passes every request through them; that costs more than
// half of what a small request costs in all.
type link struct {
	conn   net.Conn // socket, or TLS over it
	socket *socket
	origin string
	remote string
	cut    func() // closes at once, and may be called by anybody

	// Of the current request.
	written int64 // bytes of it that were handed to the system
	hungUp  bool  // writing failed: the peer has closed, perhaps after a reply
	start   start // of the response
	limit   int64 // bytes that may still be read
	ended   bool  // reading has failed or come to the end
	late    bool  // it was the deadline

	// While it is idle, guarded by the mutex of its links.
	since        time.Time
	idle         bool
	older, newer *link

	glimpse [1]byte
}

func newLink(conn net.Conn, s *socket, origin string) *link {
	return &link{conn: conn, socket: s, origin: origin, remote: s.RemoteAddr().String(), cut: func() { s.Close() }}
}

// errQuiet says that nothing has arrived on a connection, which is open. To crypto/tls it is a passing error, after which
// reading may go on.
var errQuiet net.Error = quietError{}

type quietError struct{}

func (quietError) Error() string   { return "nothing has arrived" }
func (quietError) Timeout() bool   { return true }
func (quietError) Temporary() bool { return true }

// quiet says that an idle link can take a request: it is open, and nothing has arrived that answers none. Under TLS, what is
// no data, such as a session ticket, is dealt with on the way.
func (l *link) quiet() bool {
	l.socket.glancing = true
	n, err := l.conn.Read(l.glimpse[:])
	l.socket.glancing = false
	return n == 0 && err == errQuiet
}

// begin starts a request.
func (l *link) begin(deadline time.Time, maxHeader int64) {
	l.written, l.hungUp = 0, false
	l.start, l.ended, l.late = start{}, false, false
	l.limit = maxHeader
	_ = l.socket.SetDeadline(deadline) // fails on a closed connection alone, and so will writing
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

// errHeaderTooLarge ends a response whose header does not end.
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
	l.limit -= int64(n)
	l.start.add(p[:n])
	if err != nil {
		l.ended = true
		l.late = errors.Is(err, os.ErrDeadlineExceeded) // asked here: what parses the response may call it malformed
	}
	return n, err
}

// response reads up to the body of the final response. Interim ones are passed over and count towards the limit; 101 is
// final, as it is net/http's.
func (l *link) response(br *bufio.Reader, req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(br, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			l.limit = math.MaxInt64 // the body has a cap of its own
			return resp, nil
		}
	}
}

// seen tells what is known of the link when there is no response.
func (l *link) seen() seen {
	s := seen{sent: l.written > 0, cut: l.ended}
	s.line, s.status = l.start.line()
	return s
}

// close ends the link in the way of its protocol, as far as that needs no waiting: TLS would give a peer that reads nothing
// five seconds for its farewell. Nobody else may be using the link.
func (l *link) close() {
	l.socket.glancing = true
	l.conn.Close()
}

// dialLink connects to a place. When the receiver chose HTTP/2 there is no link, but the connection.
func (c *clientID) dialLink(b *bound, p *place) (*link, *tls.Conn, error) {
	conn, err := c.dialer.dial(b, "tcp", p.addr)
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
	secure, err := c.dialer.handshake(b, s, p.addr, c.tls)
	switch {
	case err != nil:
		return nil, nil, err
	case speaksHTTP2(secure):
		return nil, secure, nil
	}
	return newLink(secure, s, p.origin), nil, nil
}
