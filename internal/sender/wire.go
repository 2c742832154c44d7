package sender

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"syscall"
)

// A wire is a connection that carries HTTP/1, watched at the level of HTTP bytes. net/http tells neither whether a failed
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
	head    [16]byte
	headLen int
	lined   bool // a complete first line of the response was seen
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
	w.headLen, w.lined, w.ended = 0, false, false
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

// cut says that the connection ended or failed under the current request.
func (w *wire) cut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// heard notes the start of a response. It says false when no request was sent that these bytes could answer: a peer that
// answers ahead must not have its answer taken for the next request's.
func (w *wire) heard(p []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written == w.begun {
		return false
	}
	if w.lined {
		return true
	}
	w.headLen += copy(w.head[w.headLen:], p)
	w.lined = bytes.IndexByte(p, '\n') >= 0
	return true
}

// A lineState says how much of a status line has arrived.
type lineState int

const (
	lineNone    lineState = iota // no byte
	linePartial                  // the start of one
	lineWhole                    // all of it
	lineForeign                  // something that is not HTTP
)

// statusLine tells what arrived of the current response's first status line, and its code when it is whole.
func (w *wire) statusLine() (lineState, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const form = "HTTP/1.x "
	head := w.head[:w.headLen]
	for i := range min(len(head), len(form)) {
		if head[i] != form[i] && form[i] != 'x' {
			return lineForeign, 0
		}
	}
	switch {
	case len(head) == 0:
		return lineNone, 0
	case !w.lined:
		return linePartial, 0
	case len(head) < len(form)+3:
		return lineForeign, 0
	}
	status := 0
	for _, c := range head[len(form) : len(form)+3] {
		if c < '0' || c > '9' {
			return lineForeign, 0
		}
		status = status*10 + int(c-'0')
	}
	return lineWhole, status
}
