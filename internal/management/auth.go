package management

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Limits of credentials.
const (
	maxToken = 8 << 10
	maxPEM   = 64 << 10
	maxText  = 1 << 10
	maxScope = 20
)

// checkAuth checks the credential for the endpoint. The sender never sends it over an unprotected connection (EDS T-37).
func (r rules) checkAuth(s *EndpointSpec) error {
	a := s.Auth
	if a == nil {
		return nil
	}
	errs := []error{r.checkKind(a)}
	if !secureTarget(s.URL) && s.URL != "" {
		errs = append(errs, fieldError("auth", "needs an https URL: over http the credential could be read on the way"))
	}
	if a.Kind == godwit.AuthMTLS && strings.HasPrefix(strings.ToLower(s.URL), "http:") {
		errs = append(errs, fieldError("auth.kind", "mtls needs an https URL"))
	}
	return errors.Join(errs...)
}

func (r rules) checkKind(a *godwit.Auth) error {
	switch a.Kind {
	case godwit.AuthBearer:
		return errors.Join(foreign(a, "token"), checkCredential("auth.token", a.Token, maxToken))
	case godwit.AuthBasic:
		err := errors.Join(foreign(a, "username", "password"), checkCredential("auth.username", a.Username, maxText))
		if strings.Contains(a.Username, ":") {
			err = errors.Join(err, fieldError("auth.username", "must not hold a colon"))
		}
		if a.Password != "" { // an API key as user name and no password is common
			err = errors.Join(err, checkCredential("auth.password", a.Password, maxText))
		}
		return err
	case godwit.AuthOAuth2:
		return r.checkOAuth2(a)
	case godwit.AuthMTLS:
		return errors.Join(foreign(a, "certificate_pem", "private_key_pem"), checkKeyPair(a))
	}
	return fieldError("auth.kind", "must be one of bearer, basic, oauth2, mtls")
}

func (r rules) checkOAuth2(a *godwit.Auth) error {
	errs := []error{
		foreign(a, "token_url", "client_id", "client_secret", "scopes", "audience"),
		r.checkURL("auth.token_url", a.TokenURL),
		checkCredential("auth.client_id", a.ClientID, maxText),
		checkCredential("auth.client_secret", a.ClientSecret, maxToken),
	}
	if a.TokenURL != "" && !secureTarget(a.TokenURL) {
		errs = append(errs, fieldError("auth.token_url", "must be https"))
	}
	if len(a.Scopes) > maxScope {
		errs = append(errs, fieldError("auth.scopes", "must have at most %d", maxScope))
	}
	for _, s := range a.Scopes {
		if strings.Contains(s, " ") || checkCredential("", s, maxText) != nil {
			errs = append(errs, fieldError("auth.scopes", "must hold words of visible ASCII"))
			break
		}
	}
	if a.Audience != "" {
		errs = append(errs, checkCredential("auth.audience", a.Audience, maxText))
	}
	return errors.Join(errs...)
}

func checkCredential(field, value string, limit int) error {
	if value == "" {
		return fieldError(field, "must not be empty")
	}
	if len(value) > limit || !validHeaderValue(value) || strings.Contains(value, "\t") {
		return fieldError(field, "must be visible ASCII of at most %d characters, without spaces at its ends", limit)
	}
	return nil
}

func checkKeyPair(a *godwit.Auth) error {
	if len(a.CertificatePEM) > maxPEM || len(a.PrivateKeyPEM) > maxPEM {
		return fieldError("auth.certificate_pem", "certificate and key must have at most %d bytes each", maxPEM)
	}
	// The library's message could quote from the key.
	if _, err := tls.X509KeyPair([]byte(a.CertificatePEM), []byte(a.PrivateKeyPEM)); err != nil {
		return fieldError("auth.certificate_pem", "certificate_pem and private_key_pem must be a certificate chain and its key in PEM form")
	}
	return nil
}

// foreign refuses members that belong to another kind, because the caller probably meant that kind.
func foreign(a *godwit.Auth, own ...string) error {
	present := []struct {
		name string
		set  bool
	}{
		{"token", a.Token != ""}, {"username", a.Username != ""}, {"password", a.Password != ""},
		{"token_url", a.TokenURL != ""}, {"client_id", a.ClientID != ""}, {"client_secret", a.ClientSecret != ""},
		{"scopes", len(a.Scopes) > 0}, {"audience", a.Audience != ""},
		{"certificate_pem", a.CertificatePEM != ""}, {"private_key_pem", a.PrivateKeyPEM != ""},
	}
	var errs []error
	for _, p := range present {
		if p.set && !slices.Contains(own, p.name) {
			errs = append(errs, fieldError("auth."+p.name, "does not belong to kind %q", a.Kind))
		}
	}
	return errors.Join(errs...)
}
