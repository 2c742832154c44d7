package native

import (
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// A reader is a client that must read in time; otherwise the server closes its connection. A client that reads nothing would
// hold memory and a connection without limit, and its key would never be checked again.
type reader struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

func newReader(w http.ResponseWriter, stall time.Duration) *reader {
	return &reader{w, http.NewResponseController(w), stall}
}

func (r *reader) write(b []byte) error {
	return r.within(func() error { _, err := r.Write(b); return err })
}

func (r *reader) flush() error { return r.within(r.control.Flush) }

// end sets a deadline for what net/http writes after the handler returns.
func (r *reader) end() { _ = r.control.SetWriteDeadline(clock.SocketDeadline(r.stall)) }

// within runs f under the write deadline and removes the deadline afterwards: a stream may be idle for long, and HTTP/2 ends
// a stream whose deadline passes even if it is idle. Sockets use the machine's clock, even where the server's clock is a
// manual one.
func (r *reader) within(f func() error) error {
	_ = r.control.SetWriteDeadline(clock.SocketDeadline(r.stall)) // test recorders do not support deadlines
	defer func() { _ = r.control.SetWriteDeadline(time.Time{}) }()
	return f()
}
