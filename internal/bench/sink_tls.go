package bench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A receiver with TLS closes a connection after so many requests. One of HTTP/2 carries many at a time.
const (
	requestsPerTLS   = 500
	requestsPerHTTP2 = 20_000
)

// newCertificate makes a certificate for 127.0.0.1 that is its own authority.
func newCertificate() (c tls.Certificate, authority []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "godwit bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return c, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// startTLSSink starts a sink that accepts deliveries over TLS, by HTTP/2 or by HTTP/1.1.
func startTLSSink(certificate tls.Certificate, http2 bool) (*sink, error) {
	plain, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // nothing to cancel
	if err != nil {
		return nil, err
	}
	s := &sink{scheme: "https", conns: map[net.Conn]struct{}{}, hung: make(chan struct{}), perConnection: requestsPerTLS}
	cfg := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	if !http2 {
		l := tls.NewListener(plain, cfg)
		s.listeners = []net.Listener{l}
		s.done.Go(func() { s.accept(l) })
		return s, nil
	}
	s.listeners = []net.Listener{plain}
	server := &http.Server{TLSConfig: cfg, Handler: s.http2Handler(), ReadHeaderTimeout: 30 * time.Second}
	cfg.NextProtos = []string{"h2"}
	cfg.VerifyConnection = func(state tls.ConnectionState) error { s.count(state); return nil }
	s.done.Go(func() { _ = server.ServeTLS(plain, "", "") })
	s.done.Go(func() { <-s.hung; server.Close() })
	return s, nil
}

func (s *sink) http2Handler() http.Handler {
	var served atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, max(r.ContentLength, 0))
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return
		}
		s.arrived(0, body)
		if served.Add(1)%requestsPerHTTP2 == 0 {
			w.Header().Set("Connection", "close")
		}
	})
}

// countHandshake counts the handshake of a connection that has served a request's head.
func (s *sink) countHandshake(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		s.count(t.ConnectionState())
	}
}

func (s *sink) count(state tls.ConnectionState) {
	s.handshakes.Add(1)
	if state.DidResume {
		s.resumed.Add(1)
	}
}
