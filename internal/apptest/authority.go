package apptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// SinkTLS describes a sink's certificate and its TLS requirements. The zero value is a valid certificate for 127.0.0.1 and
// localhost.
type SinkTLS struct {
	Names     []string // DNS names and addresses. Defaults to localhost and 127.0.0.1.
	Expired   bool     // the certificate ended an hour ago
	Untrusted bool     // signed by an authority that is not in CAFile
	// RequireClientCertificate requires a certificate of the test authority from the sender; see ClientCertificate.
	RequireClientCertificate bool
	MaxVersion               uint16 // highest TLS version that is offered. Defaults to the newest.
}

// authority signs the certificates of a test process.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var (
	trusted   = sync.OnceValues(newAuthority)
	untrusted = sync.OnceValues(newAuthority)
)

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "godwit test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key}, err
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err)
	}
	return n
}

// issue makes a leaf certificate.
func (a *authority) issue(names []string, notAfter time.Time, usage x509.ExtKeyUsage) (certDER []byte, key *ecdsa.PrivateKey, err error) {
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: notAfter.Add(-48 * time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	certDER, err = x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	return certDER, key, err
}

func (c *SinkTLS) config(t testing.TB, http2 bool) *tls.Config {
	t.Helper()
	protocol := "http/1.1"
	if http2 {
		protocol = "h2"
	}
	names := c.Names
	if len(names) == 0 {
		names = []string{"localhost", "127.0.0.1"}
	}
	notAfter := time.Now().Add(12 * time.Hour)
	if c.Expired {
		notAfter = time.Now().Add(-time.Hour)
	}
	signer := must(t, trusted)
	if c.Untrusted {
		signer = must(t, untrusted)
	}
	der, key, err := signer.issue(names, notAfter, x509.ExtKeyUsageServerAuth)
	if err != nil {
		t.Fatalf("issue certificate: %v", err)
	}
	cfg := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos:   []string{protocol},
		MinVersion:   tls.VersionTLS12,
		MaxVersion:   c.MaxVersion,
	}
	if c.RequireClientCertificate {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.ClientCAs = x509.NewCertPool()
		cfg.ClientCAs.AddCert(must(t, trusted).cert)
	}
	return cfg
}

// CAFile writes the certificate of the test authority to a file, for the ca-file setting.
func CAFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, encodePEM("CERTIFICATE", must(t, trusted).cert.Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// CAPool holds the certificate of the test authority.
func CAPool(t testing.TB) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(must(t, trusted).cert)
	return pool
}

// ClientCertificate makes a client certificate that sinks with RequireClientCertificate accept.
func ClientCertificate(t testing.TB, name string) (certPEM, keyPEM string) {
	t.Helper()
	return certificatePair(t, []string{name}, x509.ExtKeyUsageClientAuth)
}

// ServerCertificate makes a certificate for a server that the test starts.
func ServerCertificate(t testing.TB, names ...string) (certPEM, keyPEM string) {
	t.Helper()
	return certificatePair(t, names, x509.ExtKeyUsageServerAuth)
}

func certificatePair(t testing.TB, names []string, usage x509.ExtKeyUsage) (certPEM, keyPEM string) {
	t.Helper()
	der, key, err := must(t, trusted).issue(names, time.Now().Add(12*time.Hour), usage)
	if err != nil {
		t.Fatalf("issue certificate: %v", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("encode key: %v", err)
	}
	return string(encodePEM("CERTIFICATE", der)), string(encodePEM("PRIVATE KEY", keyDER))
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func must(t testing.TB, make func() (*authority, error)) *authority {
	a, err := make()
	if err != nil {
		t.Fatalf("make test authority: %v", err)
	}
	return a
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
