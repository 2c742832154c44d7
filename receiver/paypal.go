package receiver

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// PayPal is the scheme of PayPal's webhooks, verified offline: RSA with SHA-256 over <transmission id>|<transmission
// time>|<webhook id>|<CRC-32 of the body>. They are deduplicated by the event's id.
//
// You supply the certificate; it is never fetched from the address that a request names, and its dates are not checked. A
// CRC-32 finds accidents, not forgeries: within the tolerance, an attacker who has captured a request could send another body
// under its signature. Only TLS protects the body.
type PayPal struct {
	// WebhookID is the id of the webhook in PayPal's dashboard: it is signed, but not sent. Required.
	WebhookID string
	// Certificates lists the accepted certificates or public keys, in PEM. This or CertificateByURL is required.
	Certificates []string
	// CertificateByURL returns the certificate for an address, whose host was checked to be PayPal's. "" means that it is not
	// known; an error is answered with 503.
	CertificateByURL func(ctx context.Context, url string) (pem string, err error)
	// Principal names the sender. Deduplication is per principal. Defaults to paypal.
	Principal string
}

// Profile prepares the scheme.
func (s PayPal) Profile() (Profile, error) {
	if s.WebhookID == "" {
		return Profile{}, errors.New("paypal: no webhook id; set WebhookID")
	}
	if len(s.Certificates) == 0 && s.CertificateByURL == nil {
		return Profile{}, errors.New("paypal: no certificate; set Certificates or CertificateByURL")
	}
	var pinned []*rsa.PublicKey
	for i, text := range s.Certificates {
		key, err := rsaKey(text)
		if err != nil {
			return Profile{}, fmt.Errorf("paypal: certificate %d: %w", i+1, err)
		}
		pinned = append(pinned, key)
	}
	s.Principal = ownerOr(s.Principal, "paypal")
	return Profile{
		Name: "paypal", SignsTime: true, KeySource: "the member id of the event",
		Authenticate: func(ctx context.Context, m *Message, c Check) (Proof, error) {
			return s.authenticate(ctx, pinned, m, c)
		},
		Identify: func(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) { return identifyByID(m, "event_type") },
	}, nil
}

// rsaKey reads a certificate or a public key.
func rsaKey(text string) (*rsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("is not PEM")
	}
	var public any
	if block.Type == "CERTIFICATE" {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		public = certificate.PublicKey
	} else {
		var err error
		if public, err = x509.ParsePKIXPublicKey(block.Bytes); err != nil {
			return nil, fmt.Errorf("read public key: %w", err)
		}
	}
	key, ok := public.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("is not an RSA key")
	}
	return key, nil
}

func (s *PayPal) authenticate(ctx context.Context, pinned []*rsa.PublicKey, m *Message, c Check) (Proof, error) {
	id, at := m.Field("Paypal-Transmission-Id"), m.Field("Paypal-Transmission-Time")
	signature, address := m.Field("Paypal-Transmission-Sig"), m.Field("Paypal-Cert-Url")
	switch {
	case id == "", at == "", signature == "", address == "":
		return Proof{}, refuse(ReasonMissing, "A PAYPAL-… header is missing")
	case !strings.EqualFold(m.Field("Paypal-Auth-Algo"), "SHA256withRSA"):
		return Proof{}, refuse(ReasonAlgorithm, "The algorithm is not SHA256withRSA")
	case !paypalAddress(address):
		return Proof{}, refuse(ReasonUnknownKey, "The certificate is not at paypal.com")
	}
	signed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return Proof{}, errTimestamp
	}
	if err := c.fresh(signed); err != nil {
		return Proof{}, err
	}
	keys, err := s.keysAt(ctx, pinned, address)
	if err != nil {
		return Proof{}, err
	}
	message := id + "|" + at + "|" + s.WebhookID + "|" + strconv.FormatUint(uint64(crc32.ChecksumIEEE(m.Body)), 10)
	sum := sha256.Sum256([]byte(message))
	for _, key := range keys {
		if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], decodeBase64(signature)) == nil {
			return Proof{Principal: s.Principal, SignedAt: signed, Once: id + " " + at}, nil
		}
	}
	return Proof{}, errMismatch
}

// keysAt are the pinned keys and the one known by its address.
func (s *PayPal) keysAt(ctx context.Context, pinned []*rsa.PublicKey, address string) ([]*rsa.PublicKey, error) {
	if s.CertificateByURL == nil {
		return pinned, nil
	}
	text, err := s.CertificateByURL(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("find certificate: %w", err)
	}
	if text == "" {
		if len(pinned) == 0 {
			return nil, refuse(ReasonUnknownKey, "The certificate is not known")
		}
		return pinned, nil
	}
	key, err := rsaKey(text)
	if err != nil {
		return nil, fmt.Errorf("find certificate: %w", err)
	}
	return append(pinned[:len(pinned):len(pinned)], key), nil
}

// paypalAddress reports whether a certificate's address is PayPal's and uses TLS, so that a request cannot lead to another
// host.
func paypalAddress(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return false
	}
	if port := u.Port(); port != "" && port != "443" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "paypal.com" || strings.HasSuffix(host, ".paypal.com")
}
