package receiver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var clientAuthority = sync.OnceValue(func() authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return authority{cert, key}
})

// clientCertificates asks for certificates and looks at those that come; that suits clients without one, too.
func clientCertificates() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(clientAuthority().cert)
	return &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}
}

func clientCertificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := clientAuthority()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// as makes a client with a certificate; without one if it is nil.
func (g *rig) as(certificate *tls.Certificate) *http.Client {
	transport := g.server.Client().Transport.(*http.Transport).Clone()
	if certificate != nil {
		transport.TLSClientConfig.Certificates = []tls.Certificate{*certificate}
	}
	g.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestClientCertificates(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AUT-2", "EDS-KEY-6")
	shop, bank, stranger := clientCertificate(t, "shop.example"), clientCertificate(t, "bank.example"), clientCertificate(t, "stranger.example")
	sum := sha256.Sum256(bank.Certificate[0])
	g := newRig(t, withScheme(receiver.MTLS{Clients: []receiver.Client{
		{Principal: "shop", Name: "shop.example"}, {Principal: "bank", Fingerprint: hex.EncodeToString(sum[:])},
	}}))
	send := func(certificate *tls.Certificate, key string) answer {
		t.Helper()
		g.client = g.as(certificate)
		req := g.request(event{id: key}.withDefaults())
		req.Header.Set("Idempotency-Key", `"`+id("x")+`"`)
		return g.do(req)
	}
	g.want(send(nil, "x"), 401)
	g.want(send(&stranger, "x"), 401)
	g.wantCalls(0)
	g.want(send(&shop, "x"), 204)
	g.want(send(&bank, "x"), 204)
	g.wantCalls(2) // the same key of two principals is two events
	if a := send(&shop, "x"); a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repeat was answered %d %v", a.Status, a.Header)
	}
	g.wantCalls(2)
}

func TestCredentialsNeedTLS(t *testing.T) {
	trace.Covers(t, "EDS-SEC-TLS-1")
	for _, m := range mechanisms() {
		if m.name != "bearer" && m.name != "basic" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme))
			server := plainServer(t, g.Receiver)
			send := func(g *rig, url string) answer {
				e := event{id: id("x")}.withDefaults()
				req := g.request(e)
				m.sign(req, e, g.clock.Now(), true)
				req.URL.Scheme, req.URL.Host = "http", url
				return g.do(req)
			}
			g.want(send(g, server), 403)
			g.wantCalls(0)
			behind := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.PublicOrigin = "https://hooks.example.com" })
			behind.want(send(behind, plainServer(t, behind.Receiver)), 204)
			open := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.AllowHTTP = true })
			open.want(send(open, plainServer(t, open.Receiver)), 204)
		})
	}
}
