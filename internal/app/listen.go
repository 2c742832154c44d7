package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"slices"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/api/wellknown"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// serve makes the HTTP servers: of the APIs, and of metrics and profiles where they have addresses of their own.
func (a *App) serve(d Dependencies) error {
	handlers, err := newAPIs(&a.services, d, a.url, a.done)
	if err != nil {
		return err
	}
	mux := httpapi.NewMux()
	a.routes = mux.Routes
	if err := handlers.mount(mux); err != nil {
		return err
	}
	a.readiness = &readiness{stopping: a.stopping.Load, ping: a.store.Ping, dispatch: a.engine.Ready, steady: a.clock.Steady, log: a.log}
	mux.Handle("GET /readyz", a.readiness)
	warnOfAddresses(a.servers[0].listener.Addr(), a.cfg.WebhookIPs, a.log)
	t, err := tlsConfig(&a.cfg, a.clock.Now, a.log)
	if err != nil {
		return err
	}
	if a.cfg.ClientCertificates {
		t.ClientAuth = tls.RequestClientCert // the certificate is known by its fingerprint; its issuer does not matter
	}
	if a.cfg.MetricsListen == "" {
		metrics, err := handlers.guardedMetrics()
		if err != nil {
			return err
		}
		mux.Handle("GET /metrics", metrics)
	} else if err := a.add(newMetricsServer(a.cfg.MetricsListen, a.metrics, a.log)); err != nil {
		return err
	}
	if a.cfg.DebugListen != "" {
		if err := a.add(newDebugServer(a.cfg.DebugListen, a.log)); err != nil {
			return err
		}
	}
	a.servers[0] = newHTTPServer(a.servers[0].listener, closeWhen(a.stopping.Load, mux), t, d.Timeouts, a.log)
	if a.cfg.ShortWay {
		a.servers[0].addFastPath(d.Timeouts, a.clock.Now, a.log, "/v1/events")
	}
	return nil
}

// add adds a server to those that Run serves.
func (a *App) add(s *httpServer, err error) error {
	if err == nil {
		a.servers = append(a.servers, s)
	}
	return err
}

// newMetricsServer serves the metrics on a separate address, which the operator keeps private.
func newMetricsServer(address string, metrics *telemetry.Metrics, log *slog.Logger) (*httpServer, error) {
	l, err := listen(context.Background(), address)
	if err != nil {
		return nil, fmt.Errorf("metrics-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	log.Info("serving metrics", "metrics_url", "http://"+l.Addr().String()+"/metrics")
	return newHTTPServer(l, mux, nil, Timeouts{}, log), nil
}

// newDebugServer serves Go's profiler. A request takes as long as the profile that it asks for.
func newDebugServer(address string, log *slog.Logger) (*httpServer, error) {
	l, err := listen(context.Background(), address)
	if err != nil {
		return nil, fmt.Errorf("debug-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	log.Warn("the profiler is on", "debug_url", "http://"+l.Addr().String()+"/debug/pprof/")
	return newHTTPServer(l, mux, nil, Timeouts{}, log), nil
}

// warnOfAddresses warns if the published ranges are the default: a receiver that admits only these would reject our
// deliveries.
func warnOfAddresses(address net.Addr, published []config.Network, log *slog.Logger) {
	host, ok := address.(*net.TCPAddr)
	if ok && !host.IP.IsLoopback() && slices.Equal(published, config.Default().WebhookIPs) {
		log.Warn("webhook-ips is not set: receivers are told ranges that exist in documentation only", "path", wellknown.AddressesPath)
	}
}

// publicURL returns the configured public URL, or the listening address.
func publicURL(cfg *config.Config, addr net.Addr) string {
	if cfg.PublicURL != "" {
		return cfg.PublicURL
	}
	scheme := "http"
	if cfg.Secure() {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// authority returns the host and port of the app's URL.
func authority(public string) string {
	u, err := url.Parse(public)
	if err != nil {
		return ""
	}
	return u.Host
}
