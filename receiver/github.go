package receiver

import (
	"context"
	"crypto/sha256"
	"strings"
)

// GitHub is the scheme of GitHub's webhooks: X-Hub-Signature-256 over the body, deduplicated by the delivery's GUID.
//
// Neither a time nor the GUID is signed. Deduplication stops an unchanged repeat of a captured request, but not one with
// another GUID.
type GitHub struct {
	// Secrets lists the accepted secrets. Required.
	Secrets []string
	// Principal names the sender. Deduplication is per principal. Defaults to github.
	Principal string
}

// Profile prepares the scheme.
func (s GitHub) Profile() (Profile, error) {
	keys, err := textKeys("github", s.Secrets, sha256.New)
	if err != nil {
		return Profile{}, err
	}
	proof := Proof{Principal: ownerOr(s.Principal, "github")}
	return Profile{
		Name: "github", KeySource: "the header X-GitHub-Delivery",
		Authenticate: func(_ context.Context, m *Message, _ Check) (Proof, error) {
			header := m.Field("X-Hub-Signature-256")
			switch {
			case header == "":
				return Proof{}, refuse(ReasonMissing, "X-Hub-Signature-256 is missing")
			case !strings.HasPrefix(header, sha256Prefix):
				return Proof{}, errFormat
			}
			if macs, _ := hexMACs(header, sha256Prefix); !anyMAC(keys, macs, m.Body) {
				return Proof{}, errMismatch
			}
			return proof, nil
		},
		Identify: func(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) {
			key, err := boundedKey(m.Field("X-Github-Delivery"), "X-GitHub-Delivery")
			return Identity{Key: key, EventID: key, DeliveryID: key, EventType: m.Field("X-Github-Event")}, err
		},
	}, nil
}
