package app_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
)

func writePair(t *testing.T, dir string, names ...string) (cert, key string) {
	t.Helper()
	certPEM, keyPEM := apptest.ServerCertificate(t, names...)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, text := range map[string]string{cert: certPEM, key: keyPEM} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestHTTPSFromFilesAndRenewal(t *testing.T) {
	dir := t.TempDir()
	hands := clock.NewManual(time.Now())
	cert, key := writePair(t, dir, "127.0.0.1", "first.test")
	srv := apptest.Start(t, apptest.Options{Clock: hands, Configure: func(c *config.Config) { c.TLS.Cert, c.TLS.Key = cert, key }})

	get := func(h2 bool) (string, string) {
		t.Helper()
		transport := &http.Transport{ForceAttemptHTTP2: h2, TLSClientConfig: &tls.Config{RootCAs: apptest.CAPool(t)}}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Proto, resp.TLS.PeerCertificates[0].DNSNames[0]
	}
	if proto, name := get(true); proto != "HTTP/2.0" || name != "first.test" {
		t.Errorf("got %s from %s", proto, name)
	}
	if proto, _ := get(false); proto != "HTTP/1.1" {
		t.Errorf("got %s", proto)
	}

	writePair(t, dir, "127.0.0.1", "second.test")
	later := time.Now().Add(time.Hour) // the change must show in the file's time, however coarse it is
	for _, path := range []string{cert, key} {
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	hands.Advance(time.Minute)
	if _, name := get(true); name != "second.test" {
		t.Errorf("still %s after the renewal", name)
	}

	if err := os.WriteFile(cert, []byte("half a cert"), 0o600); err != nil {
		t.Fatal(err)
	}
	hands.Advance(time.Minute)
	if _, name := get(true); name != "second.test" {
		t.Errorf("%s while the file is broken", name)
	}
}
