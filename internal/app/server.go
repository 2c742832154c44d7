package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/fastpath"
)

// Timeouts limits how long a client may take. A client that sends a byte a minute must not hold a connection.
type Timeouts struct {
	Header time.Duration // for the header of a request. Defaults to 10 s.
	Read   time.Duration // for a whole request: 1 MiB over a slow line. Defaults to 60 s.
	Write  time.Duration // for a response; streams move their own deadline. Defaults to 90 s.
	Idle   time.Duration // between requests. Defaults to 2 minutes.
}

func (t *Timeouts) setDefaults() {
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&t.Header, 10 * time.Second}, {&t.Read, time.Minute}, {&t.Write, 90 * time.Second}, {&t.Idle, 2 * time.Minute}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
}

const (
	maxHeaderBytes = 32 << 10
	closeTimeout   = 5 * time.Second
)

// httpServer is an HTTP server with its listener.
type httpServer struct {
	server   *http.Server
	listener net.Listener
	cancel   context.CancelFunc // ends streams
	fast     *fastpath.Server   // nil if net/http serves all requests
}

func newHTTPServer(l net.Listener, h http.Handler, t *tls.Config, limits Timeouts, log *slog.Logger) *httpServer {
	limits.setDefaults()
	base, cancel := context.WithCancel(context.Background())
	return &httpServer{
		listener: l,
		cancel:   cancel,
		server: &http.Server{
			Handler:           withoutReadDeadline(h),
			TLSConfig:         t,
			ReadHeaderTimeout: limits.Header,
			ReadTimeout:       limits.Read,
			WriteTimeout:      limits.Write,
			IdleTimeout:       limits.Idle,
			MaxHeaderBytes:    maxHeaderBytes,
			BaseContext:       func(net.Listener) context.Context { return base },
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
}

// addFastPath serves requests to these paths without net/http, which saves about a third of the cost of receiving an event.
// Connections with TLS stay with net/http.
func (s *httpServer) addFastPath(limits Timeouts, clock func() time.Time, log *slog.Logger, paths ...string) {
	if s.server.TLSConfig != nil {
		return
	}
	limits.setDefaults()
	s.fast = fastpath.New(s.listener, fastpath.Config{
		Handler: s.server.Handler, Hot: paths, Context: s.server.BaseContext(s.listener), Clock: clock, Log: log,
		Header: limits.Header, Read: limits.Read, Write: limits.Write, Idle: limits.Idle,
	})
	s.listener = s.fast
}

// withoutReadDeadline removes the read deadline of requests that have no body. Such a request has been read whole once its
// header has arrived; the deadline would only end a live stream after a minute.
func withoutReadDeadline(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // test recorders do not support deadlines and have no timeout
		}
		h.ServeHTTP(w, r)
	})
}

// closeWhen asks clients to close their connections after the answer while stopping reports true. With HTTP/2 this ends the
// connection once its streams have ended.
func closeWhen(stopping func() bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// run serves until close.
func (s *httpServer) run() error {
	var err error
	if s.server.TLSConfig != nil {
		err = s.server.ServeTLS(s.listener, "", "")
	} else {
		err = s.server.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
}

// close lets requests finish and streams end.
func (s *httpServer) close() {
	s.cancel()
	ctx, done := context.WithTimeout(context.Background(), closeTimeout)
	defer done()
	if s.server.Shutdown(ctx) != nil {
		s.server.Close()
	}
	if s.fast != nil {
		_ = s.fast.Close() // a second time, for a server that never ran
		_ = s.fast.Wait(ctx)
	}
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}
