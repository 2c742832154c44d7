package fastpath

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config sets up a Server.
type Config struct {
	// Handler answers hot requests; the same that net/http's server has. Required.
	Handler http.Handler
	// Hot are the paths that the door serves, POST alone. Required.
	Hot []string
	// Context is that of the requests. Required.
	Context context.Context
	// Clock tells the time of the Date field. Required.
	Clock func() time.Time
	// Log gets what a handler panicked with, and why connections cannot be accepted. Required.
	Log *slog.Logger

	// Header bounds the wait for a connection's first request. Required, as are those that follow.
	Header time.Duration
	// Read bounds the arrival of a body.
	Read time.Duration
	// Write bounds the leaving of an answer.
	Write time.Duration
	// Idle bounds the wait for the next request.
	Idle time.Duration
}

// A Server is a listener of the connections that net/http has to serve. It serves the others itself.
type Server struct {
	cfg Config
	net.Listener
	hot    map[string]bool
	passed chan net.Conn
	closed chan struct{}
	open   sync.Once
	once   sync.Once
	err    error // why accepting ended; set before closed

	mu    sync.Mutex
	conns map[*conn]struct{} // those the door serves
	gone  *sync.Cond         // one has left conns
}

// New returns the door of a TCP listener. It opens with the first Accept.
func New(l net.Listener, cfg Config) *Server {
	d := &Server{
		cfg: cfg, Listener: l, hot: map[string]bool{}, passed: make(chan net.Conn), closed: make(chan struct{}),
		conns: map[*conn]struct{}{},
	}
	d.gone = sync.NewCond(&d.mu)
	for _, path := range cfg.Hot {
		d.hot[path] = true
	}
	return d
}

// accept goes on after errors that pass, such as having no file descriptor left.
func (d *Server) accept() {
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause := shortest
	for {
		c, err := d.Listener.Accept()
		if err == nil {
			pause = shortest
			d.admit(c)
			continue
		}
		var passing net.Error
		if errors.Is(err, net.ErrClosed) || !errors.As(err, &passing) {
			d.end(err)
			return
		}
		d.cfg.Log.Warn("cannot accept connections, trying again", "error", err)
		select {
		case <-d.closed:
			return
		case <-time.After(pause):
			pause = min(2*pause, longest)
		}
	}
}

func (d *Server) admit(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		go d.pass(c)
		return
	}
	served := &conn{door: d, tcp: tcp, remote: tcp.RemoteAddr().String()}
	served.body.conn = served
	d.mu.Lock()
	d.conns[served] = struct{}{}
	d.mu.Unlock()
	go served.serve()
}

// pass gives a connection to net/http.
func (d *Server) pass(c net.Conn) {
	select {
	case d.passed <- c:
	case <-d.closed:
		c.Close()
	}
}

// Accept returns the next connection for net/http.
func (d *Server) Accept() (net.Conn, error) {
	d.open.Do(func() { go d.accept() })
	select {
	case c := <-d.passed:
		return c, nil
	case <-d.closed:
		return nil, d.err
	}
}

// Close stops accepting and closes connections on which no request is being answered.
func (d *Server) Close() error {
	err := d.Listener.Close()
	d.end(net.ErrClosed)
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		c.closeIfIdle()
	}
	return err
}

func (d *Server) end(err error) {
	d.once.Do(func() {
		d.err = err
		close(d.closed)
	})
}

// Wait returns when the last request is answered. When the context ends before that, connections are closed.
func (d *Server) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for c := range d.conns {
			c.tcp.Close()
		}
	})
	defer stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.conns) > 0 {
		d.gone.Wait()
	}
	return ctx.Err()
}

func (d *Server) leave(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	d.gone.Broadcast()
}

func (d *Server) closing() bool {
	select {
	case <-d.closed:
		return true
	default:
		return false
	}
}

const bufferSize = 4 << 10

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}
