package sender

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net/http"
	"time"
)

// A clientID holds the connections made with one client certificate, or with none. Connections and resumable sessions carry the
// client's identity, so they are not shared.
type clientID struct {
	dialer    *dialer
	tls       *tls.Config
	links     links           // HTTP/1.1
	transport *http.Transport // HTTP/2, and everything through a proxy
	proxied   bool
	lastUse   uint64
}

func (s *Sender) newClientID(cert *tls.Certificate) *clientID {
	cfg := s.tls.Clone()
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	if cert != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return &clientID{
		dialer:    &s.dialer,
		tls:       cfg,
		links:     links{max: s.maxIdle, maxHost: s.maxIdlePerHost, timeout: s.idleTimeout},
		transport: s.newTransport(cfg),
		proxied:   s.proxy != nil,
	}
}

func (s *Sender) newTransport(cfg *tls.Config) *http.Transport {
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
			// Detects a dead connection before its streams reach their deadlines.
			SendPingTimeout: 15 * time.Second,
			PingTimeout:     15 * time.Second,
			// Limits what a receiver can make us hold to what we would read anyway.
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

// newFreshClientID makes one for a single request: its connection is closed after it.
func (s *Sender) newFreshClientID(cert *tls.Certificate) *clientID {
	c := s.newClientID(cert)
	c.links.closed = true
	c.transport.DisableKeepAlives = true
	return c
}

// clientID returns the connections for a hop with a certificate, which may be nil. The caller must call leave afterwards.
func (s *Sender) clientID(cert *tls.Certificate, fresh bool) (*clientID, error) {
	switch {
	case fresh:
		return s.newFreshClientID(cert), nil
	case cert != nil:
		return s.certifiedID(cert)
	}
	return s.shared, nil
}

func (s *Sender) leave(c *clientID, fresh bool) {
	if fresh || s.closed.Load() {
		c.CloseIdleConnections()
	}
}

func (s *Sender) certifiedID(cert *tls.Certificate) (*clientID, error) {
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
		c = s.newClientID(cert)
		s.clientIDs[id] = c
	}
	c.lastUse = s.uses
	return c, nil
}

func (s *Sender) dropOldestClientIDLocked() {
	var oldest [sha256.Size]byte
	first := true
	for id, c := range s.clientIDs {
		if first || c.lastUse < s.clientIDs[oldest].lastUse {
			oldest, first = id, false
		}
	}
	s.clientIDs[oldest].retire()
	delete(s.clientIDs, oldest)
}

// usesLinks reports whether a request to a destination goes over a link, as far as is known.
func (c *clientID) usesLinks(p *destination) bool {
	return linksWork && !c.proxied && !(p.secure && c.links.speaksHTTP2(p.origin))
}

// CloseIdleConnections closes unused connections.
func (c *clientID) CloseIdleConnections() {
	c.links.clear(false)
	c.transport.CloseIdleConnections()
}

// retire closes unused connections, and the others when their requests have ended.
func (c *clientID) retire() {
	c.links.clear(true)
	c.transport.CloseIdleConnections()
}
