package receiver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Bearer is the scheme of deliveries with a token in Authorization and an Idempotency-Key. The token authenticates the sender.
// Only TLS protects body and headers, so TLS is required.
type Bearer struct {
	// Tokens lists the accepted tokens. Several tokens of one principal allow a rotation. Required.
	Tokens []Token
}

// A Token is a secret with its owner.
type Token struct {
	// Value is the secret. Required.
	Value string
	// Principal is the token's owner. Required.
	Principal string
}

// Profile prepares the scheme.
func (s Bearer) Profile() (Profile, error) {
	known, err := newCredentials("bearer", s.Tokens)
	if err != nil {
		return Profile{}, err
	}
	p := credentialProfile("bearer", `Bearer realm="webhooks"`)
	p.Authenticate = func(_ context.Context, m *Message, _ Check) (Proof, error) {
		scheme, token, _ := strings.Cut(m.Field("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return Proof{}, refuse(ReasonMissing, "No bearer token")
		}
		return known.proof(strings.TrimLeft(token, " "))
	}
	return p, nil
}

// Basic is the scheme of deliveries with name and password in Authorization (RFC 7617) and an Idempotency-Key. TLS is required.
type Basic struct {
	// Users lists the accepted users. Required.
	Users []User
}

// A User is a name with a password.
type User struct {
	Name     string
	Password string
	// Principal is the user's identity. Defaults to Name.
	Principal string
}

// Profile prepares the scheme.
func (s Basic) Profile() (Profile, error) {
	var tokens []Token
	for _, u := range s.Users {
		if u.Password == "" || u.Name == "" || strings.Contains(u.Name, ":") {
			return Profile{}, errors.New("basic: a user needs a name without colon, and a password")
		}
		tokens = append(tokens, Token{u.Name + ":" + u.Password, ownerOr(u.Principal, u.Name)})
	}
	known, err := newCredentials("basic", tokens)
	if err != nil {
		return Profile{}, err
	}
	p := credentialProfile("basic", `Basic realm="webhooks", charset="UTF-8"`)
	p.Authenticate = func(_ context.Context, m *Message, _ Check) (Proof, error) {
		name, password, ok := m.Request.BasicAuth()
		if !ok {
			return Proof{}, refuse(ReasonMissing, "No name and password")
		}
		return known.proof(name + ":" + password)
	}
	return p, nil
}

func credentialProfile(name, challenge string) Profile {
	return Profile{
		Name: name, Problems: true, Challenge: challenge, Credentials: true,
		KeySyntax: true, KeySource: "the header Idempotency-Key",
		Identify: identifyKeyed,
		Success:  func(Identity) Answer { return Answer{Status: http.StatusNoContent} },
	}
}

// identifyKeyed is for schemes that authenticate only the sender: the key alone identifies an event.
func identifyKeyed(m *Message, _ *Proof, k KeyPolicy) (Identity, error) {
	key, err := ParseKey(m.Request.Header["Idempotency-Key"], k)
	return Identity{Key: key, EventID: key}, err
}

// credentials holds digests of the accepted credentials. All of them are compared, in constant time.
type credentials []struct {
	digest [sha256.Size]byte
	owner  string
}

func newCredentials(scheme string, tokens []Token) (credentials, error) {
	known := make(credentials, len(tokens))
	for i, t := range tokens {
		if t.Value == "" || t.Principal == "" {
			return nil, fmt.Errorf("%s: credential %d needs a value and a principal", scheme, i+1)
		}
		known[i].digest, known[i].owner = sha256.Sum256([]byte(t.Value)), t.Principal
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s: no credential", scheme)
	}
	return known, nil
}

func (known credentials) proof(value string) (Proof, error) {
	digest, owner := sha256.Sum256([]byte(value)), ""
	for i := range known {
		if subtle.ConstantTimeCompare(known[i].digest[:], digest[:]) == 1 {
			owner = known[i].owner
		}
	}
	if owner == "" {
		return Proof{}, refuse(ReasonMismatch, "Unknown credentials")
	}
	return Proof{Principal: owner}, nil
}

// MTLS is the scheme of deliveries with a client certificate and an Idempotency-Key. The server must ask for certificates: with
// tls.RequireAndVerifyClientCert for clients known by name, at least with tls.RequireAnyClientCert for clients known by
// fingerprint.
type MTLS struct {
	// Clients lists the accepted clients. Required.
	Clients []Client
}

// A Client is identified by the name in a certificate that the server has verified, or by one certificate.
type Client struct {
	// Principal is the client's identity. Required.
	Principal string
	// Name is a DNS name or URI of the certificate, or its common name if it has neither. This or Fingerprint is required.
	Name string
	// Fingerprint is the SHA-256 of the certificate in hex, with or without colons.
	Fingerprint string
}

// Profile prepares the scheme.
func (s MTLS) Profile() (Profile, error) {
	names, prints := map[string]string{}, map[[sha256.Size]byte]string{}
	for i, c := range s.Clients {
		digits, err := hex.DecodeString(strings.ReplaceAll(c.Fingerprint, ":", ""))
		switch {
		case c.Principal == "" || (c.Name == "") == (c.Fingerprint == ""):
			return Profile{}, fmt.Errorf("mtls: client %d needs a principal, and either a name or a fingerprint", i+1)
		case c.Name != "":
			names[c.Name] = c.Principal
		case err != nil || len(digits) != sha256.Size:
			return Profile{}, fmt.Errorf("mtls: the fingerprint of client %d is not a SHA-256 in hex", i+1)
		default:
			prints[[sha256.Size]byte(digits)] = c.Principal
		}
	}
	if len(s.Clients) == 0 {
		return Profile{}, errors.New("mtls: no client; set Clients")
	}
	p := credentialProfile("mtls", `Mutual realm="webhooks"`)
	p.Authenticate = func(_ context.Context, m *Message, _ Check) (Proof, error) {
		state := m.Request.TLS
		if state == nil || len(state.PeerCertificates) == 0 {
			return Proof{}, refuse(ReasonMissing, "No client certificate")
		}
		leaf := state.PeerCertificates[0]
		if owner, ok := prints[sha256.Sum256(leaf.Raw)]; ok {
			return Proof{Principal: owner}, nil
		}
		if len(state.VerifiedChains) > 0 {
			for _, name := range certificateNames(leaf) {
				if owner, ok := names[name]; ok {
					return Proof{Principal: owner}, nil
				}
			}
		}
		return Proof{}, refuse(ReasonUnknownKey, "Unknown client certificate")
	}
	return p, nil
}

func certificateNames(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	if len(names) == 0 && c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}
