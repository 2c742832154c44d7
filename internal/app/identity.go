package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/api/native"
	"github.com/godwit-hq/godwit/internal/api/oidc"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/identity"
)

// IdentityConfig returns the settings of the identity provider, with the files that they name, or nil if there is none. `godwit doctor` uses it, too.
func IdentityConfig(cfg *config.Config) (*identity.Config, error) {
	if cfg.OIDC.Issuer == "" {
		return nil, nil
	}
	grants, err := identity.ReadGrants(cfg.OIDC.Grants)
	if err != nil {
		return nil, err
	}
	secret, err := clientSecret(&cfg.OIDC)
	if err != nil {
		return nil, err
	}
	roots, err := extraRoots(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	return &identity.Config{
		Issuer: cfg.OIDC.Issuer, ClientID: cfg.OIDC.ClientID, ClientSecret: secret, Scopes: cfg.OIDC.Scopes, GroupsClaim: cfg.OIDC.GroupsClaim, Grants: grants,
		Client: identity.NewClient(roots),
	}, nil
}

func clientSecret(o *config.OIDC) (string, error) {
	if o.ClientSecretFile == "" {
		return o.ClientSecret, nil
	}
	text, err := os.ReadFile(o.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("oidc-client-secret-file: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("oidc-client-secret-file: %s is empty", o.ClientSecretFile)
	}
	return secret, nil
}

// extraRoots returns the authorities of the system and those of a file, or nil for those of the system alone.
func extraRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca-file: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca-file: has no certificate in PEM")
	}
	return roots, nil
}

// newIdentity returns the identity provider, or nil if none is configured. url is where browsers reach this server.
func newIdentity(s *services, url string) (*identity.Provider, error) {
	cfg, err := IdentityConfig(&s.cfg)
	if cfg == nil || err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(url, "/")
	cfg.RedirectURL, cfg.SignedOutURL = base+oidc.CallbackPath, base+"/ui/"
	cfg.Ring, cfg.Now, cfg.Log = s.ring, s.clock.Now, s.log
	return identity.New(*cfg), nil
}

// checkIdentity logs at the start whether the identity provider answers. The server works without it.
func (a *App) checkIdentity(ctx context.Context) {
	if a.identity == nil {
		return
	}
	defer context.AfterFunc(ctx, a.identity.Close)() // a stop does not wait for the provider
	if err := a.identity.Check(); err != nil {
		a.log.Warn("identity provider does not answer as it should; each sign-in tries again", "issuer", a.cfg.OIDC.Issuer, "error", err)
		return
	}
	a.log.Info("identity provider found", "issuer", a.cfg.OIDC.Issuer)
}

// oidc returns the handlers of sign-ins by the identity provider.
func (a *apis) oidc() httpapi.Router {
	return oidc.New(oidc.Config{
		Provider: a.identity, Ring: a.ring, Sessions: a.management.Sessions, Callers: a.management.Callers, Browser: a.browser, Failures: a.failures,
		Problems: a.problems, Lifetime: a.cfg.OIDC.SessionLifetime.Real(), Now: a.clock.Now, Log: a.log,
	})
}

// signInMethod describes the sign-in by the identity provider, or returns nil.
func (a *apis) signInMethod() *native.SignInMethod {
	if a.identity == nil {
		return nil
	}
	m := &native.SignInMethod{Kind: "oidc", Name: a.cfg.OIDC.Name, StartURL: a.browser.URL(oidc.StartPath)}
	if a.identity.CanSignOut() {
		m.SignOutURL = a.browser.URL(oidc.SignOutPath)
	}
	return m
}
