package app

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/godwit-hq/godwit/internal/config"
)

// tlsConfig returns nil if the server serves plain http.
func tlsConfig(c *config.Config, now func() time.Time, log *slog.Logger) (*tls.Config, error) {
	switch {
	case len(c.ACME.Domains) > 0:
		manager := &autocert.Manager{
			Prompt:     autocert.AcceptTOS,
			HostPolicy: autocert.HostWhitelist(c.ACME.Domains...),
			Cache:      autocert.DirCache(filepath.Join(c.Data, "acme")),
			Email:      c.ACME.Email,
		}
		if c.ACME.Directory != "" {
			manager.Client = &acme.Client{DirectoryURL: c.ACME.Directory}
		}
		t := manager.TLSConfig()
		t.MinVersion = tls.VersionTLS12
		return t, nil
	case c.TLS.Cert != "":
		pair := &certificateFiles{cert: c.TLS.Cert, key: c.TLS.Key, now: now, log: log}
		if _, err := pair.load(); err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.current() },
		}, nil
	}
	return nil, nil
}

// certificateFiles is a certificate on disk that may be renewed while the server runs.
type certificateFiles struct {
	cert, key string
	now       func() time.Time
	log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	stamp   [2]time.Time
	checked time.Time
}

// recheck is the longest time before the server notices a renewed certificate.
const recheck = 10 * time.Second

func (f *certificateFiles) current() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.checked) < recheck {
		return f.pair, nil
	}
	f.checked = f.now()
	if f.stamps() == f.stamp {
		return f.pair, nil
	}
	if _, err := f.loadLocked(); err != nil {
		f.log.Error("keep the old certificate", "error", err) // a renewal may have written only one of the two files so far
	}
	return f.pair, nil
}

func (f *certificateFiles) load() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loadLocked()
}

func (f *certificateFiles) loadLocked() (*tls.Certificate, error) {
	stamp := f.stamps()
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	f.pair, f.stamp, f.checked = &pair, stamp, f.now()
	return f.pair, nil
}

func (f *certificateFiles) stamps() (s [2]time.Time) {
	for i, path := range []string{f.cert, f.key} {
		if info, err := os.Stat(path); err == nil {
			s[i] = info.ModTime()
		}
	}
	return s
}
