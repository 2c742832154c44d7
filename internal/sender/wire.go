package sender

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// A wire is a connection that carries HTTP/1 for net/http, observed at the level of HTTP bytes. net/http does not report
// whether a failed request was sent or whether a status line had arrived, and it drops a response if writing the rest of the
// request fails. The wire records the first two and prevents the third.
//
// One request uses it at a time. The request's goroutine calls begin and done; net/http's goroutines call Read and Write.
type wire struct {
	net.Conn
	remote string
	clear  bool // HTTP bytes pass unencrypted: not below TLS to a receiver behind a proxy

	mu      sync.Mutex
	turn    uint64 // counts requests
	written int64  // bytes passed to Write
	begun   int64  // value of written when the current request began, or when the last one was done
	hungUp  bool   // writing failed because the peer closed
	retired bool   // not to be used for another request
	start   start
	ended   bool // reading has failed or reached the end
}

var (
	// errStale ends a request on a connection that cannot be used any more, before a byte of it is written.
	errStale = errors.New("connection is not usable any more")
	// errUnasked ends a connection on which the peer sent bytes while no request was under way.
	errUnasked = errors.New("peer sent bytes that answer no request")
)

func newWire(conn net.Conn, clear bool) *wire {
	return &wire{Conn: conn, remote: conn.RemoteAddr().String(), clear: clear}
}

// begin starts a request. It returns the turn for done.
func (w *wire) begin() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn++
	w.begun = w.written
	w.start, w.ended = start{}, false
	return w.turn
}

// done ends a request, unless the connection already serves the next one.
func (w *wire) done(turn uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn == turn {
		w.begun = w.written
	}
}

// sent reports whether any byte of the current request may have been sent.
func (w *wire) sent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written > w.begun
}

// retire keeps the connection from serving another request. It does not affect the current one.
func (w *wire) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retired = true
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	fresh := w.written == w.begun
	switch {
	case fresh && (w.hungUp || w.retired):
		w.mu.Unlock()
		return 0, errStale
	case w.hungUp:
		w.mu.Unlock()
		return len(p), nil
	}
	w.written += int64(len(p)) // before writing, so that a response never precedes the bytes it answers
	w.mu.Unlock()

	n, err := w.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written -= int64(len(p) - n)
	if w.clear && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		// The peer has closed, perhaps after a response (EDS T-39). net/http would drop the response because of this error. So
		// let the reading side decide: it sees the response or the end of the connection.
		w.hungUp = true
		return len(p), nil
	}
	return n, err
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 && w.clear && !w.heard(p[:n]) {
		return 0, errUnasked
	}
	if err != nil {
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
	}
	return n, err
}

// seen returns what is known of the current request without a response.
func (w *wire) seen() seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := seen{sent: w.written > w.begun, cut: w.ended}
	switch {
	case w.clear:
		s.line, s.status = w.start.line()
	case !w.ended:
		s.line = lineForeign
	}
	return s
}

// heard records the start of a response. It reports false if no request was sent that these bytes could answer: an early answer
// must not be taken for the next request's.
func (w *wire) heard(p []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written == w.begun {
		return false
	}
	w.start.add(p)
	return true
}
