package receiver

import (
	"context"
	"crypto/sha256"
)

// Shopify is the scheme of Shopify's webhooks: X-Shopify-Hmac-Sha256 over the body, deduplicated by X-Shopify-Event-Id, else by
// X-Shopify-Webhook-Id.
//
// Neither a time nor the id is signed. Deduplication stops an unchanged repeat of a captured request, but not one with another
// id.
type Shopify struct {
	// Secrets lists the accepted client secrets of the app. Required.
	Secrets []string
	// Principal names the sender. Deduplication is per principal. Defaults to shopify.
	Principal string
}

// Profile prepares the scheme.
func (s Shopify) Profile() (Profile, error) {
	keys, err := textKeys("shopify", s.Secrets, sha256.New)
	if err != nil {
		return Profile{}, err
	}
	proof := Proof{Principal: ownerOr(s.Principal, "shopify")}
	return Profile{
		Name: "shopify", KeySource: "the header X-Shopify-Event-Id, else X-Shopify-Webhook-Id",
		Authenticate: func(_ context.Context, m *Message, _ Check) (Proof, error) {
			header := m.Field("X-Shopify-Hmac-Sha256")
			if header == "" {
				return Proof{}, refuse(ReasonMissing, "X-Shopify-Hmac-Sha256 is missing")
			}
			if mac := decodeBase64(header); mac == nil || !anyMAC(keys, [][]byte{mac}, m.Body) {
				return Proof{}, errMismatch
			}
			return proof, nil
		},
		Identify: func(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) {
			event, delivery := m.Field("X-Shopify-Event-Id"), m.Field("X-Shopify-Webhook-Id")
			if event == "" {
				event = delivery
			}
			key, err := boundedKey(event, "X-Shopify-Event-Id")
			return Identity{Key: key, EventID: key, DeliveryID: delivery, EventType: m.Field("X-Shopify-Topic")}, err
		},
	}, nil
}
