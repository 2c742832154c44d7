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
	// Handler answers the requests, as that of net/http's server does. Required.
	Handler http.Handler
	// Hot lists the paths served without net/http. Only POST is. Required.
	Hot []string
	// Context is the context of every request. Required.
	Context context.Context
	// Clock is used for the Date field. Required.
	Clock func() time.Time
	// Log receives panics of the handler and errors of accepting connections. Required.
	Log *slog.Logger

	// Header limits the wait for a connection's first request. Required, like the limits that follow.
	Header time.Duration
	// Read limits the time in which a body must arrive.
	Read time.Duration
	// Write limits the time to send a response.
	Write time.Duration
	// Idle limits the wait for the next request.
	Idle time.Duration
}

// A Server is the listener from which net/http's server accepts connections. It serves ordinary requests for hot paths itself,
// and returns from Accept only the connections that net/http must serve.
type Server struct {
	cfg Config
	net.Listener
	hot    map[string]bool
	passed chan net.Conn
	closed chan struct{}
	open   sync.Once
	once   sync.Once
	err    error // why accepting ended; set before closed is closed

	mu    sync.Mutex
	conns map[*conn]struct{} // served by the fast path
	gone  *sync.Cond         // signals that a connection left conns
}

// New returns a Server on a TCP listener. It accepts connections from the first call of Accept on.
func New(l net.Listener, cfg Config) *Server {
	s := &Server{
		cfg: cfg, Listener: l, hot: map[string]bool{}, passed: make(chan net.Conn), closed: make(chan struct{}),
		conns: map[*conn]struct{}{},
	}
	s.gone = sync.NewCond(&s.mu)
	for _, path := range cfg.Hot {
		s.hot[path] = true
	}
	return s
}

// accept continues after temporary errors, such as having no file descriptor left.
func (s *Server) accept() {
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause := shortest
	for {
		c, err := s.Listener.Accept()
		if err == nil {
			pause = shortest
			s.admit(c)
			continue
		}
		var passing net.Error
		if errors.Is(err, net.ErrClosed) || !errors.As(err, &passing) {
			s.end(err)
			return
		}
		s.cfg.Log.Warn("accepting a connection failed, will retry", "error", err)
		select {
		case <-s.closed:
			return
		case <-time.After(pause):
			pause = min(2*pause, longest)
		}
	}
}

func (s *Server) admit(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		go s.pass(c)
		return
	}
	served := &conn{server: s, tcp: tcp, remote: tcp.RemoteAddr().String()}
	served.body.conn = served
	s.mu.Lock()
	s.conns[served] = struct{}{}
	s.mu.Unlock()
	go served.serve()
}

// pass hands a connection to net/http.
func (s *Server) pass(c net.Conn) {
	select {
	case s.passed <- c:
	case <-s.closed:
		c.Close()
	}
}

// Accept returns the next connection for net/http.
func (s *Server) Accept() (net.Conn, error) {
	s.open.Do(func() { go s.accept() })
	select {
	case c := <-s.passed:
		return c, nil
	case <-s.closed:
		return nil, s.err
	}
}

// Close stops accepting and closes connections on which no request is being answered.
func (s *Server) Close() error {
	err := s.Listener.Close()
	s.end(net.ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.closeIfIdle()
	}
	return err
}

func (s *Server) end(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.closed)
	})
}

// Wait returns when the last request is answered. If the context ends earlier, Wait closes the connections.
func (s *Server) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			c.tcp.Close()
		}
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.conns) > 0 {
		s.gone.Wait()
	}
	return ctx.Err()
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.gone.Broadcast()
}

func (s *Server) closing() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

const bufferSize = 4 << 10

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}
