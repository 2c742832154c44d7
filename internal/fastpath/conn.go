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

// tcpConn is the part of *net.TCPConn that the server and net/http use.
type tcpConn interface {
	net.Conn
	CloseWrite() error
	io.ReaderFrom
}

// conn is a connection that the fast path serves. All fields except state belong to its goroutine.
type conn struct {
	server *Server
	tcp    tcpConn
	remote string
	br     *bufio.Reader
	state  atomic.Int32
	served bool // a request was answered on it

	body     body
	response response
	out      []byte
}

// The states of a connection. The server may close one that is waiting.
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
	defer c.server.leave(c)
	c.br = readers.Get().(*bufio.Reader)
	c.br.Reset(c.tcp)
	wait := c.server.cfg.Header
	for {
		r := c.next(wait)
		if r == nil {
			break
		}
		if !c.reply(r) || c.server.closing() {
			c.tcp.Close()
			break
		}
		wait = c.server.cfg.Idle
		c.served = true
		c.state.Store(waiting)
	}
	c.br.Reset(nil)
	readers.Put(c.br)
}

// next returns the next request. It returns nil if the connection was closed or handed to net/http.
func (c *conn) next(wait time.Duration) *http.Request {
	// This check follows the change of the state: Close may have found the connection busy, or not yet known.
	if c.server.closing() && c.br.Buffered() == 0 {
		c.tcp.Close()
		return nil
	}
	_ = c.tcp.SetReadDeadline(time.Now().Add(wait)) // a socket's deadline is in the machine's time
	if !c.awaitRequest() {
		c.tcp.Close()
		return nil
	}
	if !c.state.CompareAndSwap(waiting, busy) {
		return nil // Close closed it
	}
	text, _ := c.br.Peek(c.br.Buffered())
	r, size := c.server.understand(text)
	if r == nil {
		_ = c.tcp.SetReadDeadline(time.Time{})
		rest := make([]byte, len(text))
		copy(rest, text)
		c.server.pass(&passedConn{tcpConn: c.tcp, rest: rest})
		return nil
	}
	_, _ = c.br.Discard(size)
	r.RemoteAddr = c.remote
	r.Body = http.NoBody
	if r.ContentLength > 0 {
		c.body = body{conn: c, left: r.ContentLength}
		r.Body = &c.body
	}
	return r
}

// awaitRequest waits for the first bytes of a request. Like net/http, it wants four bytes of a later request, and skips line
// breaks among these, which some clients send after a body.
func (c *conn) awaitRequest() bool {
	if !c.served {
		_, err := c.br.Peek(1)
		return err == nil
	}
	first, err := c.br.Peek(4)
	if err != nil {
		return false
	}
	breaks := 0
	for breaks < len(first) && (first[breaks] == '\r' || first[breaks] == '\n') {
		breaks++
	}
	_, _ = c.br.Discard(breaks)
	return true
}

// reply calls the handler and sends its response. It reports whether the connection can serve another request.
func (c *conn) reply(r *http.Request) (alive bool) {
	w := &c.response
	w.reset()
	hasBody := r.ContentLength > 0 // asked before the handler can change it
	if !c.handle(w, r) {
		return false
	}
	w.finish()
	if hasBody && !w.close && !c.endBody(r) {
		w.close = true
	}
	closing := c.server.closing()
	out := w.appendTo(c.out[:0], c.server.cfg.Clock(), closing)
	if c.out = out; cap(out) > 4*bufferSize {
		c.out = nil
	}
	_ = c.tcp.SetWriteDeadline(time.Now().Add(c.server.cfg.Write))
	_, err := c.tcp.Write(out)
	if w.close && hasBody {
		_ = c.body.discard() // closing with bytes unread would reset the connection, and the client might lose the response
	}
	return err == nil && w.reusable() && !closing
}

// endBody reads the rest of the request's body. It reports whether the next request follows on the connection.
func (c *conn) endBody(r *http.Request) bool {
	if r.Body == &c.body && c.body.closed {
		return c.body.ended
	}
	return c.body.discard() == nil
}

// handle reports whether the handler returned. If it panicked, no response is sent, as with net/http.
func (c *conn) handle(w *response, r *http.Request) (done bool) {
	defer func() {
		if done {
			return
		}
		if v := recover(); v != http.ErrAbortHandler {
			c.server.cfg.Log.Error("handler panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	c.server.cfg.Handler.ServeHTTP(w, r)
	return true
}

// passedConn is a connection handed to net/http. Its first bytes are those that the fast path has read.
type passedConn struct {
	tcpConn
	rest []byte
}

func (c *passedConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.tcpConn.Read(p)
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n, nil
}
