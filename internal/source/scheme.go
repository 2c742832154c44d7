package source

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/receiver"
)

// A scheme is a method by which upstreams authenticate.
type scheme struct {
	name string
	doc  string
	// mint generates a secret if the scheme lets the server choose it; nil if the upstream chooses it.
	mint func() string
	// public says that credentials are public keys, certificates or fingerprints instead of secrets. both says that either
	// is allowed.
	public, both bool
	// named says that the upstream chooses a credential's id: a key id or a user name.
	named bool
	// passwords says that one id may have several secrets at once, during a rotation.
	passwords bool
	// keyed says that the scheme includes an Idempotency-Key. Other schemes have a delivery id of their own.
	keyed bool
	// looseID says that the signature covers a time but not the delivery id.
	looseID bool
	make    func(s *godwit.Source, live []godwit.Credential) receiver.Scheme
}

// Schemes lists the names of all schemes in a fixed order.
func Schemes() []string {
	var names []string
	for i := range schemes {
		names = append(names, schemes[i].name)
	}
	return names
}

// SchemeDoc describes a scheme in one sentence.
func SchemeDoc(name string) string {
	if s := schemeNamed(name); s != nil {
		return s.doc
	}
	return ""
}

func schemeNamed(name string) *scheme {
	i := slices.IndexFunc(schemes, func(s scheme) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return &schemes[i]
}

var schemes = []scheme{
	{name: "eds", doc: "HTTP Message Signatures (RFC 9421), HMAC-SHA256 or Ed25519, as Godwit itself delivers", mint: mintBase64, both: true, named: true, keyed: true, make: makeEDS},
	{name: "ojs", doc: "Open Job Spec: X-OJS-Signature", mint: mintText("whsec_"), looseID: true, make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
		return receiver.OJS{Secrets: secretsOf(live), Principal: s.ID.String()}
	}},
	{name: "cybercube", doc: "CYBERCUBE: X-Webhook-Signature", mint: mintText("whsec_"), make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
		return receiver.Cybercube{Secrets: secretsOf(live), Principal: s.ID.String()}
	}},
	{name: "standard-webhooks", doc: "Standard Webhooks: webhook-signature, v1 and v1a", mint: func() string { return "whsec_" + mintBase64() }, both: true,
		make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
			return receiver.StandardWebhooks{Keys: append(secretsOf(live), publicOf(live)...), Principal: s.ID.String()}
		}},
	{name: "github", doc: "GitHub: X-Hub-Signature-256", mint: mintText(""), make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
		return receiver.GitHub{Secrets: secretsOf(live), Principal: s.ID.String()}
	}},
	{name: "stripe", doc: "Stripe: Stripe-Signature", make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
		return receiver.Stripe{Secrets: secretsOf(live), Principal: s.ID.String()}
	}},
	{name: "shopify", doc: "Shopify: X-Shopify-Hmac-Sha256", make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
		return receiver.Shopify{Secrets: secretsOf(live), Principal: s.ID.String()}
	}},
	{name: "slack", doc: "Slack: X-Slack-Signature", make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
		return receiver.Slack{Secrets: secretsOf(live), Principal: s.ID.String()}
	}},
	{name: "twilio", doc: "Twilio: X-Twilio-Signature", make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
		return receiver.Twilio{Secrets: secretsOf(live), Principal: s.ID.String()}
	}},
	{name: "paypal", doc: "PayPal's offline scheme: PAYPAL-TRANSMISSION-SIG, with a certificate that you give", public: true,
		make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
			return receiver.PayPal{WebhookID: s.Settings.WebhookID, Certificates: publicOf(live), Principal: s.ID.String()}
		}},
	{name: "bearer", doc: "a token in Authorization, over TLS", mint: mintText("gdin_"), keyed: true,
		make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
			var all receiver.Bearer
			for i := range live {
				all.Tokens = append(all.Tokens, receiver.Token{Value: live[i].Secret, Principal: s.ID.String()})
			}
			return all
		}},
	{name: "basic", doc: "a name and a password in Authorization, over TLS", mint: mintText("gdin_"), named: true, passwords: true, keyed: true,
		make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
			var all receiver.Basic
			for i := range live {
				all.Users = append(all.Users, receiver.User{Name: live[i].ID, Password: live[i].Secret, Principal: s.ID.String()})
			}
			return all
		}},
	{name: "mtls", doc: "a client certificate, known by its SHA-256 fingerprint", public: true, keyed: true,
		make: func(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
			var all receiver.MTLS
			for i := range live {
				all.Clients = append(all.Clients, receiver.Client{Principal: s.ID.String(), Fingerprint: live[i].PublicKey})
			}
			return all
		}},
}

func makeEDS(s *godwit.Source, live []godwit.Credential) receiver.Scheme {
	all := receiver.EDS{PutAgreement: s.Settings.PutAgreement}
	for i := range live {
		all.Keys = append(all.Keys, receiver.EDSKey{ID: live[i].ID, Principal: s.ID.String(), Secret: live[i].Secret, PublicKey: live[i].PublicKey})
	}
	return all
}

func mintBase64() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}

func mintText(prefix string) func() string {
	return func() string {
		var b [32]byte
		rand.Read(b[:])
		return prefix + base64.RawURLEncoding.EncodeToString(b[:])
	}
}

func secretsOf(list []godwit.Credential) []string {
	var all []string
	for i := range list {
		if list[i].Secret != "" {
			all = append(all, list[i].Secret)
		}
	}
	return all
}

func publicOf(list []godwit.Credential) []string {
	var all []string
	for i := range list {
		if list[i].PublicKey != "" {
			all = append(all, list[i].PublicKey)
		}
	}
	return all
}

// check returns what is wrong with a credential for the scheme, or "".
func (s *scheme) check(c *godwit.Credential) string {
	switch {
	case s.public && (c.PublicKey == "" || c.Secret != ""):
		return "needs a public_key, and no secret"
	case s.both && (c.PublicKey == "") == (c.Secret == ""):
		return "needs either a secret or a public_key"
	case !s.public && !s.both && c.PublicKey != "":
		return "needs a secret, and no public_key"
	case !s.public && !s.both && c.Secret == "":
		return "needs a secret: this upstream makes it itself"
	case s.named && c.ID == "":
		return "needs an id: the key id of the upstream's signatures, or its user name"
	}
	return ""
}

// prepare prepares the scheme with the valid credentials. The error says what is wrong with them.
func (s *scheme) prepare(src *godwit.Source, live []godwit.Credential) (receiver.Profile, error) {
	if len(live) == 0 {
		return receiver.Profile{}, errNoCredential
	}
	p, err := s.make(src, live).Profile()
	if err != nil {
		return p, err
	}
	p.Challenge = cmp.Or(p.Challenge, `Signature realm="`+p.Name+`"`)
	if len(p.Methods) == 0 {
		p.Methods = []string{"POST"}
	}
	return p, nil
}

var errNoSource = fmt.Errorf("find source: %w", store.ErrNotFound)

var errNoScheme = errors.New("the source has a scheme that this release does not know")

var errNoCredential = errors.New("no credential is good now")
