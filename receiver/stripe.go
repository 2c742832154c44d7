package receiver

import (
	"context"
	"crypto/sha256"
	"strings"
)

// Stripe is the scheme of Stripe's webhooks: Stripe-Signature with t=<time> and v1=<hex> over <t>.<body>, deduplicated by the
// event's id. The same event may be sent again with another count of pending_webhooks, so bodies are not compared.
type Stripe struct {
	// Secrets lists the accepted secrets (whsec_…), each the whole text. Required.
	Secrets []string
	// Principal names the sender. Deduplication is per principal. Defaults to stripe.
	Principal string
}

// Profile prepares the scheme.
func (s Stripe) Profile() (Profile, error) {
	keys, err := textKeys("stripe", s.Secrets, sha256.New)
	if err != nil {
		return Profile{}, err
	}
	principal := ownerOr(s.Principal, "stripe")
	return Profile{
		Name: "stripe", SignsTime: true, NoFingerprint: true, KeySource: "the member id of the event",
		Authenticate: func(_ context.Context, m *Message, c Check) (Proof, error) {
			return authenticateStripe(keys, principal, m, c)
		},
		Identify: func(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) { return identifyByID(m, "type") },
	}, nil
}

func authenticateStripe(keys []macKey, principal string, m *Message, c Check) (Proof, error) {
	header := m.Field("Stripe-Signature")
	if header == "" {
		return Proof{}, refuse(ReasonMissing, "Stripe-Signature is missing")
	}
	timestamp := ""
	for pair := range strings.SplitSeq(header, ",") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(pair), "t="); ok {
			timestamp = value
			break
		}
	}
	signed, err := unixSeconds(timestamp)
	if err != nil {
		return Proof{}, err
	}
	if err := c.fresh(signed); err != nil {
		return Proof{}, err
	}
	if macs, _ := hexMACs(header, "v1="); !anyMAC(keys, macs, []byte(timestamp+"."), m.Body) {
		return Proof{}, errMismatch
	}
	return Proof{Principal: principal, SignedAt: signed, Once: timestamp}, nil
}

// identifyByID is for events that are JSON objects with a member id.
func identifyByID(m *Message, typeMember string) (Identity, error) {
	event, err := requireMembers(m.Body, "id", typeMember)
	if err != nil {
		return Identity{}, err
	}
	key, err := boundedKey(event.text("id"), "The event's id")
	return Identity{Key: key, EventID: key, EventType: event.text(typeMember)}, err
}
