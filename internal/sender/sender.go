package sender

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// ErrInterrupted is the cause with which to cancel the context of Send at shutdown. Any cancellation that is not a deadline is
// reported as godwit.FailureInterrupted.
var ErrInterrupted = errors.New("interrupted by shutdown")

// A Sender makes requests. It is safe for concurrent use.
type Sender struct {
	clock             func() time.Time
	allowHTTP         bool
	redirectHosts     []string
	proxy             *url.URL
	maxResponseBody   int64
	maxResponseHeader int64
	idleTimeout       time.Duration
	maxIdle           int
	maxIdlePerHost    int
	maxClientIDs      int

	guard  guard
	dialer dialer
	tls    *tls.Config

	destinations destinationCache
	shared       *clientID // for requests without a client certificate
	closed       atomic.Bool

	mu        sync.Mutex // guards what follows
	clientIDs map[[sha256.Size]byte]*clientID
	uses      uint64
}

// New returns a Sender. It opens no connection.
func New(cfg Config) (*Sender, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	guard, err := newGuard(cfg.AllowAddresses, cfg.DenyAddresses)
	if err != nil {
		return nil, err
	}
	roots, err := cfg.roots()
	if err != nil {
		return nil, err
	}
	s := &Sender{
		clock:             cfg.Clock,
		allowHTTP:         cfg.AllowHTTP,
		redirectHosts:     cfg.redirectHosts(),
		proxy:             cfg.Proxy,
		maxResponseBody:   cfg.MaxResponseBody,
		maxResponseHeader: cfg.MaxResponseHeader,
		idleTimeout:       cfg.IdleTimeout,
		maxIdle:           cfg.MaxIdle,
		maxIdlePerHost:    cfg.MaxIdlePerHost,
		maxClientIDs:      cfg.MaxClientIDs,
		guard:             guard,
		dialer:            newDialer(cfg, guard),
		// Verification is always on: there is no setting for it (EDS-SEC-TLS-2). crypto/tls never sends early data over
		// TCP, also when it resumes a session (EDS-VER-4).
		tls: &tls.Config{
			MinVersion: tls.VersionTLS12,
			RootCAs:    roots,
			NextProtos: []string{"h2", "http/1.1"},
		},
		clientIDs: map[[sha256.Size]byte]*clientID{},
	}
	s.shared = s.newClientID(nil)
	return s, nil
}

// Close closes unused connections. Running attempts continue, and their connections are closed after them; later attempts are
// interrupted.
func (s *Sender) Close() {
	s.closed.Store(true)
	s.shared.retire()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clientIDs {
		c.retire()
	}
}
