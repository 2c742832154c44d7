package receiver

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// StandardWebhooks is the scheme of deliveries after the Standard Webhooks specification: v1 (HMAC-SHA256) and v1a (Ed25519)
// over <id>.<timestamp>.<body>. They are deduplicated by webhook-id.
type StandardWebhooks struct {
	// Keys lists the accepted shared secrets (whsec_…) and public keys (whpk_…). Required.
	Keys []string
	// Principal names the sender. Deduplication is per principal. Defaults to standard-webhooks.
	Principal string
}

type standardKeys struct {
	principal string
	v1        []macKey
	v1a       []ed25519.PublicKey
}

const (
	standardName = "standard-webhooks"
	secretPrefix = "whsec_"
	publicPrefix = "whpk_"
)

// Profile prepares the scheme.
func (s StandardWebhooks) Profile() (Profile, error) {
	k := &standardKeys{principal: ownerOr(s.Principal, standardName)}
	for i, text := range s.Keys {
		if err := k.add(text); err != nil {
			return Profile{}, fmt.Errorf("%s: key %d: %w", standardName, i+1, err)
		}
	}
	if len(k.v1)+len(k.v1a) == 0 {
		return Profile{}, errors.New(standardName + ": no key; set Keys")
	}
	return Profile{
		Name: standardName, SignsTime: true, KeySource: "the header webhook-id",
		Authenticate: k.authenticate,
		Identify:     identifyStandard,
		Success:      func(Identity) Answer { return Answer{Status: http.StatusNoContent} },
	}, nil
}

func (k *standardKeys) add(text string) error {
	if public, ok := strings.CutPrefix(text, publicPrefix); ok {
		bytes := decodeBase64(public)
		if len(bytes) != ed25519.PublicKeySize {
			return fmt.Errorf("is not base64 of %d bytes", ed25519.PublicKeySize)
		}
		k.v1a = append(k.v1a, bytes)
		return nil
	}
	bytes := decodeBase64(strings.TrimPrefix(text, secretPrefix))
	if len(bytes) == 0 {
		return errors.New("is not base64")
	}
	k.v1 = append(k.v1, newMACKey(sha256.New, bytes))
	return nil
}

func (k *standardKeys) authenticate(_ context.Context, m *Message, c Check) (Proof, error) {
	id, timestamp, header := m.Field("Webhook-Id"), m.Field("Webhook-Timestamp"), m.Field("Webhook-Signature")
	if id == "" || header == "" {
		return Proof{}, refuse(ReasonMissing, "No signature")
	}
	signed, err := unixSeconds(timestamp)
	if err != nil {
		return Proof{}, err
	}
	if err := c.fresh(signed); err != nil {
		return Proof{}, err
	}
	prefix := []byte(id + "." + timestamp + ".")
	good := anyMAC(k.v1, standardEntries(header, "v1,"), prefix, m.Body)
	if !good && len(k.v1a) > 0 {
		good = k.anySignature(append(prefix, m.Body...), standardEntries(header, "v1a,"))
	}
	if !good {
		return Proof{}, errMismatch
	}
	return Proof{Principal: k.principal, SignedAt: signed, Once: id + " " + timestamp}, nil
}

func (k *standardKeys) anySignature(message []byte, signatures [][]byte) bool {
	for _, key := range k.v1a {
		for _, signature := range signatures {
			if ed25519.Verify(key, message, signature) {
				return true
			}
		}
	}
	return false
}

// standardEntries reads the entries of one version. It skips those of other versions and invalid base64.
func standardEntries(header, version string) (entries [][]byte) {
	for entry := range strings.FieldsSeq(header) {
		text, ok := strings.CutPrefix(entry, version)
		if !ok || len(entries) == maxSignatures {
			continue
		}
		if bytes := decodeBase64(text); bytes != nil {
			entries = append(entries, bytes)
		}
	}
	return entries
}

func identifyStandard(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) {
	key, err := boundedKey(m.Field("Webhook-Id"), "webhook-id")
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Key: key, EventID: key, DeliveryID: key}
	if event, err := parseMembers(m.Body, "type"); err == nil {
		id.EventType = event.text("type")
	}
	return id, nil
}
