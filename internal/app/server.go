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
)

// What a client may take its time for. A body has the longest: 1 MiB over a poor line. Answers that stream for longer
// move their own deadline.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 90 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	closeTimeout      = 5 * time.Second
)

// httpServer is an HTTP server on a listener of its own.
type httpServer struct {
	server   *http.Server
	listener net.Listener
	cancel   context.CancelFunc // ends streams
}

func newHTTPServer(l net.Listener, h http.Handler, t *tls.Config, log *slog.Logger) *httpServer {
	base, cancel := context.WithCancel(context.Background())
	return &httpServer{
		listener: l,
		cancel:   cancel,
		server: &http.Server{
			Handler:           unhurried(h),
			TLSConfig:         t,
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			BaseContext:       func(net.Listener) context.Context { return base },
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
}

// unhurried frees requests without a body from the read timeout, which has done its work once the header is there: left
// alone it would end a live stream after a minute.
func unhurried(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // unknown to test recorders, which have no timeout
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
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}
