package app

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/config"
)

// The server must not ask an authority for names that the operator did not list: any client can send a ClientHello.
func TestACMEAsksForListedNamesOnly(t *testing.T) {
	cfg := config.Default()
	cfg.Data = t.TempDir()
	cfg.ACME.Domains = []string{"hooks.example.com"}
	cfg.ACME.Directory = "http://127.0.0.1:1/directory" // would refuse the connection, and say so
	c, err := tlsConfig(&cfg, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, proto := range []string{"h2", "http/1.1", "acme-tls/1"} {
		if !slices.Contains(c.NextProtos, proto) {
			t.Errorf("%s is not offered", proto)
		}
	}
	_, err = c.GetCertificate(&tls.ClientHelloInfo{ServerName: "elsewhere.example.com"})
	if err == nil || err.Error() != `acme/autocert: host "elsewhere.example.com" not configured in HostWhitelist` {
		t.Errorf("got %v", err)
	}
}
