package fastpath

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// maxBody is the longest body that the door takes. One that a handler leaves unread is read to its end, so that the answer
// is not lost with the connection; it must be short for that.
const maxBody = 64 << 10

// conn is a connection that the door serves. All but the state belongs to its goroutine.
type conn struct {
	door   *Server
	tcp    *net.TCPConn
	remote string
	br     *bufio.Reader
	state  atomic.Int32

	body   body
	answer response
	out    []byte
}

// The states of a connection. One that waits may be closed by others.
const (
	waiting int32 = iota
	busy
	ended
)

func (c *conn) closeIfIdle() {
	if c.state.CompareAndSwap(waiting, ended) {
		c.tcp.Close()
	}
}

func (c *conn) serve() {
	defer c.door.leave(c)
	c.br = readers.Get().(*bufio.Reader)
	c.br.Reset(c.tcp)
	wait := c.door.cfg.Header
	for {
		r := c.next(wait)
		if r == nil {
			break
		}
		if !c.reply(r) || c.door.closing() {
			c.tcp.Close()
			break
		}
		wait = c.door.cfg.Idle
		c.state.Store(waiting)
	}
	c.br.Reset(nil)
	readers.Put(c.br)
}

// next returns the next request. Without one, the connection is closed, or has gone to net/http.
func (c *conn) next(wait time.Duration) *http.Request {
	if c.door.closing() && c.br.Buffered() == 0 { // asked after the state was set: Close may have seen it busy, or not at all
		c.tcp.Close()
		return nil
	}
	_ = c.tcp.SetReadDeadline(time.Now().Add(wait)) // the machine's time: a deadline on a socket knows no other
	if _, err := c.br.Peek(1); err != nil {
		c.tcp.Close()
		return nil
	}
	if !c.state.CompareAndSwap(waiting, busy) {
		return nil // closed by the door
	}
	text, _ := c.br.Peek(c.br.Buffered())
	r, size := c.door.understand(text)
	if r == nil {
		_ = c.tcp.SetReadDeadline(time.Time{})
		rest := make([]byte, len(text))
		copy(rest, text)
		c.door.pass(&passedConn{TCPConn: c.tcp, rest: rest})
		return nil
	}
	_, _ = c.br.Discard(size)
	r.RemoteAddr = c.remote
	c.body.left, c.body.late = r.ContentLength, false
	r.Body = &c.body
	return r
}

// reply has the handler answer, and says whether the connection can serve on.
func (c *conn) reply(r *http.Request) (alive bool) {
	w := &c.answer
	w.reset()
	if !c.handle(w, r) {
		return false
	}
	if _, err := io.Copy(io.Discard, &c.body); err != nil {
		w.close = true
	}
	w.close = w.close || c.door.closing()
	out := w.appendTo(c.out[:0], c.door.cfg.Clock())
	if c.out = out; cap(out) > 4*bufferSize {
		c.out = nil
	}
	_ = c.tcp.SetWriteDeadline(time.Now().Add(c.door.cfg.Write))
	_, err := c.tcp.Write(out)
	return err == nil && !w.close
}

// handle says false when the handler panicked: then nothing is answered, as by net/http.
func (c *conn) handle(w *response, r *http.Request) (done bool) {
	defer func() {
		if done {
			return
		}
		if v := recover(); v != http.ErrAbortHandler {
			c.door.cfg.Log.Error("handler panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	c.door.cfg.Handler.ServeHTTP(w, r)
	return true
}

// body is the body of the current request.
type body struct {
	conn *conn
	left int64
	late bool // the deadline for it was set
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if !b.late && int64(b.conn.br.Buffered()) < b.left {
		b.late = true
		_ = b.conn.tcp.SetReadDeadline(time.Now().Add(b.conn.door.cfg.Read))
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.conn.br.Read(p)
	b.left -= int64(n)
	if err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *body) Close() error { return nil }

// passedConn is a connection given to net/http: what was read of it comes first.
type passedConn struct {
	*net.TCPConn
	rest []byte
}

func (c *passedConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.TCPConn.Read(p)
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n, nil
}
