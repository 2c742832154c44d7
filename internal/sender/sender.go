package sender

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// ErrInterrupted is a cause to cancel the context of Send with, when we ourselves stop. Any cancellation that is not a
// deadline is reported as godwit.FailureInterrupted; this one says so by name.
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

	shared *http.Transport // for requests without a client certificate
	closed atomic.Bool

	mu        sync.Mutex // guards what follows
	clientIDs map[[sha256.Size]byte]*clientID
	uses      uint64
}

// A clientID is the connections made under one client certificate.
type clientID struct {
	transport *http.Transport
	lastUse   uint64
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
	s.shared = s.newTransport(nil)
	return s, nil
}

// newTransport makes a connection pool. One for each client certificate: neither connections nor resumable sessions, which
// carry the client's identity, may pass from one to the other.
func (s *Sender) newTransport(cert *tls.Certificate) *http.Transport {
	cfg := s.tls.Clone()
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	if cert != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	t := &http.Transport{
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        s.maxIdle,
		MaxIdleConnsPerHost: s.maxIdlePerHost,
		IdleConnTimeout:     s.idleTimeout,
		TLSHandshakeTimeout: s.dialer.timeout,
		TLSClientConfig:     cfg,
		// No Accept-Encoding is sent: a response is kept as it came, and none can unpack to more than its cap.
		DisableCompression:     true,
		MaxResponseHeaderBytes: s.maxResponseHeader,
		HTTP2: &http.HTTP2Config{
			// A connection that has died in silence is found out before its streams have all run into their deadlines.
			SendPingTimeout: 15 * time.Second,
			PingTimeout:     15 * time.Second,
			// What a receiver can make us hold: no more than we would read anyway.
			MaxReceiveBufferPerStream:     128 << 10,
			MaxReceiveBufferPerConnection: 1 << 20,
		},
	}
	if s.proxy != nil {
		t.Proxy = http.ProxyURL(s.proxy)
		t.DialContext = s.dialer.dialProxy
		return t
	}
	t.DialContext = s.dialer.dialPlain
	t.DialTLSContext = s.dialer.dialTLS(cfg)
	return t
}

// transport returns the connection pool for a request and what to call when the attempt is over.
func (s *Sender) transport(r *Request) (t *http.Transport, done func(), err error) {
	switch {
	case r.FreshConnection:
		t = s.newFreshTransport(r.ClientCertificate)
		return t, t.CloseIdleConnections, nil
	case r.ClientCertificate != nil:
		t, err = s.clientTransport(r.ClientCertificate)
	default:
		t = s.shared
	}
	return t, func() {
		if s.closed.Load() {
			t.CloseIdleConnections()
		}
	}, err
}

// newFreshTransport makes a pool for a single attempt.
func (s *Sender) newFreshTransport(cert *tls.Certificate) *http.Transport {
	t := s.newTransport(cert)
	t.DisableKeepAlives = true
	return t
}

func (s *Sender) clientTransport(cert *tls.Certificate) (*http.Transport, error) {
	if len(cert.Certificate) == 0 {
		return nil, errors.New("client certificate is empty")
	}
	id := sha256.Sum256(cert.Certificate[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	c := s.clientIDs[id]
	if c == nil {
		if len(s.clientIDs) >= s.maxClientIDs {
			s.dropOldestClientIDLocked()
		}
		c = &clientID{transport: s.newTransport(cert)}
		s.clientIDs[id] = c
	}
	c.lastUse = s.uses
	return c.transport, nil
}

func (s *Sender) dropOldestClientIDLocked() {
	var oldest [sha256.Size]byte
	first := true
	for id, c := range s.clientIDs {
		if first || c.lastUse < s.clientIDs[oldest].lastUse {
			oldest, first = id, false
		}
	}
	s.clientIDs[oldest].transport.CloseIdleConnections()
	delete(s.clientIDs, oldest)
}

// Close closes unused connections. Attempts under way go on, and theirs are closed after them; later ones are interrupted.
func (s *Sender) Close() {
	s.closed.Store(true)
	s.shared.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clientIDs {
		c.transport.CloseIdleConnections()
	}
}

// attemptContext bounds an attempt. The cause tells its deadline from everything else.
func attemptContext(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return context.WithTimeoutCause(ctx, timeout, errDeadline)
}

var errDeadline = fmt.Errorf("attempt: %w", context.DeadlineExceeded)
