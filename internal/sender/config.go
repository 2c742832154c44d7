package sender

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Defaults of Config and Request.
const (
	DefaultTimeout           = 30 * time.Second
	DefaultConnectTimeout    = 10 * time.Second
	DefaultIdleTimeout       = 90 * time.Second
	DefaultMaxResponseBody   = 64 << 10
	DefaultMaxResponseHeader = 64 << 10
	DefaultMaxIdle           = 4096
	DefaultMaxIdlePerHost    = 256
	DefaultMaxClientIDs      = 256
	DefaultMaxHops           = 3
)

// Config sets up a Sender. The zero value, with a Clock, is a strict one: https only, public addresses only.
type Config struct {
	// Clock returns the start and end times of attempts. Deadlines use the machine's timers. Required.
	Clock func() time.Time

	// AllowHTTP permits http:// targets. Meant for development and for private networks. Defaults to false.
	AllowHTTP bool

	// AllowAddresses are ranges inside the trust boundary that may be connected to nevertheless, for example 10.20.0.0/16, or
	// 127.0.0.0/8 and ::1/128 for development. Defaults to none.
	AllowAddresses []netip.Prefix

	// DenyAddresses are public ranges inside the trust boundary that must not be connected to. AllowAddresses takes precedence.
	// Defaults to none.
	DenyAddresses []netip.Prefix

	// AllowRedirectHosts are hosts to which a redirect from another host may lead: a name, *.name for its subdomains, or * for
	// any. Defaults to none: a redirect stays on its host.
	AllowRedirectHosts []string

	// Proxy is an egress proxy (http, https, socks5 or socks5h) for all requests. The address guard then checks only literal
	// addresses; see the package documentation. Defaults to none; the environment is ignored.
	Proxy *url.URL

	// ExtraCAs are certificate authorities in PEM, trusted beside those of the system. Defaults to none.
	ExtraCAs []byte

	// MaxResponseBody limits the bytes read of a response body. The status of a longer response still counts; its connection is
	// closed. Defaults to 64 KiB.
	MaxResponseBody int64

	// MaxResponseHeader limits the response header, interim responses included. Defaults to 64 KiB.
	MaxResponseHeader int64

	// ConnectTimeout limits resolving and connecting, and again the TLS handshake, within the attempt's deadline. Defaults to
	// 10 s.
	ConnectTimeout time.Duration

	// IdleTimeout is how long an unused connection is kept. Defaults to 90 s.
	IdleTimeout time.Duration

	// MaxIdle limits the unused connections. Defaults to 4096.
	MaxIdle int

	// MaxIdlePerHost limits the unused HTTP/1 connections for a host and port. Defaults to 256.
	MaxIdlePerHost int

	// MaxClientIDs limits the client certificates for which connections are kept. Beyond it the least recently used loses its
	// connections. Defaults to 256.
	MaxClientIDs int

	// Resolver looks up names. Defaults to the system's, asked by Go's own resolver.
	Resolver *net.Resolver
}

// withDefaults sets defaults and refuses invalid settings.
func (c Config) withDefaults() (Config, error) {
	if c.Clock == nil {
		return c, errors.New("sender: Clock is required")
	}
	for _, n := range []int64{
		c.MaxResponseBody, c.MaxResponseHeader, int64(c.ConnectTimeout), int64(c.IdleTimeout),
		int64(c.MaxIdle), int64(c.MaxIdlePerHost), int64(c.MaxClientIDs),
	} {
		if n < 0 {
			return c, errors.New("sender: limits and timeouts must not be negative")
		}
	}
	defaultTo(&c.MaxResponseBody, DefaultMaxResponseBody)
	defaultTo(&c.MaxResponseHeader, DefaultMaxResponseHeader)
	defaultTo(&c.ConnectTimeout, DefaultConnectTimeout)
	defaultTo(&c.IdleTimeout, DefaultIdleTimeout)
	defaultTo(&c.MaxIdle, DefaultMaxIdle)
	defaultTo(&c.MaxIdlePerHost, DefaultMaxIdlePerHost)
	defaultTo(&c.MaxClientIDs, DefaultMaxClientIDs)
	if c.Resolver == nil {
		// The C library's resolver accepts "0177.1" and the like as addresses and cannot be cancelled.
		c.Resolver = &net.Resolver{PreferGo: true}
	}
	for _, h := range c.AllowRedirectHosts {
		if rest := strings.TrimPrefix(h, "*."); h != "*" && (rest == "" || strings.ContainsAny(rest, "*:/")) {
			return c, fmt.Errorf("sender: redirect host %q is not a name, *.name or *", h)
		}
	}
	return c, c.checkProxy()
}

func defaultTo[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

func (c Config) checkProxy() error {
	if c.Proxy == nil {
		return nil
	}
	switch c.Proxy.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return fmt.Errorf("sender: proxy scheme %q is not one of http, https, socks5, socks5h", c.Proxy.Scheme)
	}
	if c.Proxy.Hostname() == "" {
		return errors.New("sender: proxy has no host")
	}
	return nil
}

// roots are the system's certificate authorities and the extra ones; nil means the system's alone.
func (c Config) roots() (*x509.CertPool, error) {
	if len(c.ExtraCAs) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("load system certificate authorities: %w", err)
	}
	if !pool.AppendCertsFromPEM(c.ExtraCAs) {
		return nil, errors.New("sender: ExtraCAs holds no certificate in PEM")
	}
	return pool, nil
}

// redirectHosts are AllowRedirectHosts as they are compared.
func (c Config) redirectHosts() []string {
	hosts := make([]string, 0, len(c.AllowRedirectHosts))
	for _, h := range c.AllowRedirectHosts {
		hosts = append(hosts, strings.ToLower(strings.TrimSuffix(h, ".")))
	}
	return hosts
}
