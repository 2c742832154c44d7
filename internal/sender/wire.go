package sender

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// A wire is a connection that carries HTTP/1 for net/http, watched at the level of HTTP bytes. net/http tells neither whether a failed
// request had left, nor whether a status line had arrived; and it gives up a reply when writing the rest of the request
// fails. The wire knows the first two and mends the third.
//
// It is used by one request at a time. begin and done are called by the request's goroutine, Read and Write by those of
// net/http.
type wire struct {
	net.Conn
	remote string
	clear  bool // HTTP bytes pass in the clear: not below TLS to a receiver behind a proxy

	mu      sync.Mutex
	turn    uint64 // counts requests
	written int64  // bytes handed over for writing
	begun   int64  // value of written when the current request began, or when the last one was done
	hungUp  bool   // writing failed because the peer closed
	retired bool   // not to be used for another request
	start   start
	ended   bool // reading has failed or come to the end
}

var (
	// errStale ends a request on a connection that cannot be used any more, before a byte of it is written.
	errStale = errors.New("connection is not usable any more")
	// errUnasked ends a connection on which the peer spoke while no request had been sent.
	errUnasked = errors.New("peer sent bytes that answer no request")
)

func newWire(conn net.Conn, clear bool) *wire {
	return &wire{Conn: conn, remote: conn.RemoteAddr().String(), clear: clear}
}

// begin starts a request. The turn it returns is for done.
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

// sent says whether any byte of the current request may have left.
func (w *wire) sent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written > w.begun
}

// retire keeps the connection from serving another request. One that is under way is not harmed.
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
	w.written += int64(len(p)) // before writing, so that a reply never comes before the bytes it answers
	w.mu.Unlock()

	n, err := w.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written -= int64(len(p) - n)
	if w.clear && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		// The peer has hung up, perhaps after a reply (EDS T-39). Net/http would drop the reply for the sake of this
		// error; so let the reading side decide, which sees the reply, or the end of the connection.
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

// seen tells what is known of the current request when there is no response.
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

// heard notes the start of a response. It says false when no request was sent that these bytes could answer: a peer that
// answers ahead must not have its answer taken for the next request's.
func (w *wire) heard(p []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written == w.begun {
		return false
	}
	w.start.add(p)
	return true
}
