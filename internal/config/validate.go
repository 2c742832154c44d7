package config

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// SQLite is the value of Store that means the embedded database.
const SQLite = "sqlite"

// maxPerHour limits the memory that counting takes.
const maxPerHour = 100_000

// Check refuses invalid settings, and names each of them.
func (c *Config) Check() error {
	var errs []error
	bad := func(flag, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", flag, fmt.Sprintf(format, args...)))
	}
	if err := c.Storage.Check(); err != nil {
		errs = append(errs, err)
	}
	checkAddress("listen", c.Listen, bad)
	if c.MetricsListen != "" {
		checkAddress("metrics-listen", c.MetricsListen, bad)
	}
	if c.DebugListen != "" {
		checkAddress("debug-listen", c.DebugListen, bad)
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			bad("public-url", "must be a URL such as https://hooks.example.com")
		}
	}
	if len(c.Node) > 64 || strings.ContainsAny(c.Node, " \t\r\n") {
		bad("node", "must be at most 64 characters without spaces")
	}
	if c.MaxBody < 1 || c.MaxBody > 64<<20 {
		bad("max-body", "must be between 1B and 64MiB")
	}
	c.checkTLS(bad)
	if d := c.RelayDeadline.Real(); d < time.Second || d > time.Minute {
		bad("relay-deadline", "must be between 1s and 1m")
	}
	if d := c.Lease.Real(); d < time.Second || d > time.Hour {
		bad("lease", "must be between 1s and 1h")
	}
	if c.ClientCertificates && !c.Secure() {
		bad("client-certificates", "needs tls-cert or acme-domains: a proxy in front keeps certificates to itself")
	}
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil || u.Hostname() == "" || !strings.Contains(" http https socks5 socks5h ", " "+u.Scheme+" ") {
			bad("proxy", "must be a URL with the scheme http, https, socks5 or socks5h")
		}
	}
	for _, d := range []struct {
		flag  string
		value Duration
		least time.Duration
	}{
		{"idempotency-window", c.IdempotencyWindow, time.Minute},
		{"sessions-idle", c.Sessions.Idle, time.Minute},
		{"sessions-lifetime", c.Sessions.Lifetime, time.Minute},
		{"oidc-session-lifetime", c.OIDC.SessionLifetime, time.Minute},
		{"retention-events", c.Retention.Events, time.Hour},
		{"retention-attempts", c.Retention.Attempts, time.Hour},
		{"retention-dead-letters", c.Retention.DeadLetters, time.Hour},
		{"retention-stats-minutes", c.Retention.StatsMinutes, time.Hour},
		{"retention-stats-hours", c.Retention.StatsHours, 24 * time.Hour},
		{"retention-stats-days", c.Retention.StatsDays, 24 * time.Hour},
	} {
		if d.value.Real() < d.least {
			bad(d.flag, "must be at least %s", Duration(d.least))
		}
	}
	for flag, n := range map[string]int64{
		"limits-endpoints": int64(c.Limits.Endpoints), "limits-window": int64(c.Limits.Window),
		"limits-in-flight": int64(c.Limits.InFlight), "limits-held": int64(c.Limits.Held),
		"limits-endpoint-creations": int64(c.Limits.EndpointCreations),
	} {
		if n < 1 {
			bad(flag, "must be at least 1")
		}
	}
	for flag, n := range map[string]int{
		"limits-events-per-second": c.Limits.EventsPerSecond, "limits-burst": c.Limits.Burst, "limits-waiting-deliveries": c.Limits.WaitingDeliveries,
		"sessions-failures-per-minute": c.Sessions.FailuresPerMinute,
	} {
		if n < 0 {
			bad(flag, "must not be negative")
		}
	}
	for flag, n := range map[string]int{
		"cybercube-creates-per-hour": c.Cybercube.CreatesPerHour, "cybercube-updates-per-hour": c.Cybercube.UpdatesPerHour,
		"cybercube-deletes-per-hour": c.Cybercube.DeletesPerHour, "cybercube-tests-per-hour": c.Cybercube.TestsPerHour,
		"cybercube-replays-per-hour": c.Cybercube.ReplaysPerHour,
	} {
		if n < 0 || n > maxPerHour {
			bad(flag, "must be between 0 and %d", maxPerHour)
		}
	}
	if c.MetricsSeries < 1 {
		bad("metrics-series", "must be at least 1")
	}
	if c.MetaEvents != MetaWanted && c.MetaEvents != MetaExplicit {
		bad("meta-events", "must be wanted or explicit")
	}
	c.SMTP.check(bad)
	c.OIDC.check(bad)
	if c.Log.Format != "text" && c.Log.Format != "json" {
		bad("log-format", "must be text or json")
	}
	return errors.Join(errs...)
}

// The values of MetaEvents.
const (
	MetaWanted   = "wanted"
	MetaExplicit = "explicit"
)

func (s *SMTP) check(bad func(flag, format string, args ...any)) {
	if s.PerMinute < 1 {
		bad("smtp-per-minute", "must be at least 1")
	}
	if s.URL == "" {
		if s.From != "" {
			bad("smtp-url", "must be given beside smtp-from")
		}
		return
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || (u.Scheme != "smtp" && u.Scheme != "smtps") || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		bad("smtp-url", "must be a URL such as smtp://user:password@mail.example.com:587")
	}
	if _, err := mail.ParseAddress(s.From); err != nil {
		bad("smtp-from", "must be an address such as godwit@example.com")
	}
}

func (o *OIDC) check(bad func(flag, format string, args ...any)) {
	if o.Issuer == "" {
		for flag, value := range map[string]string{
			"oidc-client-id": o.ClientID, "oidc-client-secret": o.ClientSecret, "oidc-client-secret-file": o.ClientSecretFile, "oidc-grants": o.Grants,
		} {
			if value != "" {
				bad("oidc-issuer", "must be given beside %s", flag)
			}
		}
		return
	}
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Hostname() == "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil:
		bad("oidc-issuer", "must be a URL such as https://id.example.com/realms/staff, without a query")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		bad("oidc-issuer", "must begin with https://: the identity of people depends on what is read there")
	}
	if o.ClientID == "" {
		bad("oidc-client-id", "must be given beside oidc-issuer")
	}
	if o.ClientSecret != "" && o.ClientSecretFile != "" {
		bad("oidc-client-secret-file", "cannot be used together with oidc-client-secret: choose one")
	}
	if o.Grants == "" {
		bad("oidc-grants", "must be given beside oidc-issuer: without it, no person may do anything")
	}
	if !slices.Contains(o.Scopes, "openid") {
		bad("oidc-scopes", "must contain openid")
	}
	if o.GroupsClaim == "" {
		bad("oidc-groups-claim", "must name a claim")
	}
	if o.Name == "" || len(o.Name) > 40 {
		bad("oidc-name", "must have 1 to 40 characters")
	}
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// Check refuses an unknown kind of store.
func (s *Storage) Check() error {
	if s.Data == "" {
		return errors.New("data: must name a directory")
	}
	if s.StoreConnections != 0 && (s.StoreConnections < 5 || s.StoreConnections > 1000) {
		return errors.New("store-connections: must be between 5 and 1000")
	}
	if s.Store == SQLite || s.Postgres() {
		return nil
	}
	return errors.New("store: must be \"sqlite\" or a URL such as postgres://user@host/name")
}

// Postgres reports whether the store is a PostgreSQL database.
func (s *Storage) Postgres() bool {
	return strings.HasPrefix(s.Store, "postgres://") || strings.HasPrefix(s.Store, "postgresql://")
}

func (c *Config) checkTLS(bad func(flag, format string, args ...any)) {
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		bad("tls-cert", "needs tls-key beside it, and the other way round")
	}
	if c.TLS.Cert != "" && len(c.ACME.Domains) > 0 {
		bad("acme-domains", "cannot be used together with tls-cert: choose one source of certificates")
	}
	if len(c.ACME.Domains) == 0 && (c.ACME.Email != "" || c.ACME.Directory != "") {
		bad("acme-domains", "must name at least one domain when other acme settings are given")
	}
	for _, d := range c.ACME.Domains {
		if !strings.Contains(d, ".") || strings.ContainsAny(d, "*/: ") {
			bad("acme-domains", "%q is not a full domain name", d)
		}
	}
}

// Secure reports whether https is served.
func (c *Config) Secure() bool { return c.TLS.Cert != "" || len(c.ACME.Domains) > 0 }

func checkAddress(flag, address string, bad func(flag, format string, args ...any)) {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		bad(flag, "must be HOST:PORT, such as 127.0.0.1:8080 or :8080")
	}
}
