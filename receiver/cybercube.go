package receiver

import (
	"crypto/sha256"
	"net/http"
	"time"
)

// Cybercube is the scheme of CYBERCUBE webhooks. They are deduplicated by the event's id, for all attempts (CCW-IDM-2).
type Cybercube struct {
	// Secrets lists the accepted secrets (whsec_…), each the whole text as issued. Required.
	Secrets []string
	// Principal names the sender. Deduplication is per principal. Defaults to cybercube.
	Principal string
}

// Profile prepares the scheme.
func (s Cybercube) Profile() (Profile, error) {
	keys, err := textKeys("cybercube", s.Secrets, sha256.New)
	if err != nil {
		return Profile{}, err
	}
	scheme := &timestamped{"X-Webhook-Signature", "X-Webhook-Timestamp", ownerOr(s.Principal, "cybercube"), keys, true}
	return Profile{
		Name: "cybercube", SignsTime: true, AlwaysDedup: true, KeySource: "the member id of the event",
		WindowFloor:  7 * 24 * time.Hour, // CCW-IDM-9
		Lease:        5 * time.Minute,    // CCW-IDM-6
		Refusal:      "Invalid signature",
		Authenticate: scheme.authenticate,
		Identify:     identifyCybercube,
		Success: func(id Identity) Answer {
			return jsonAnswer(http.StatusOK, received{Received: true, EventID: id.EventID})
		},
	}, nil
}

func identifyCybercube(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) {
	event, err := requireMembers(m.Body, "id", "type")
	if err != nil {
		return Identity{}, err
	}
	key, err := boundedKey(event.text("id"), "The event's id")
	if err != nil {
		return Identity{}, err
	}
	return Identity{
		Key: key, EventID: key, EventType: event.text("type"), DeliveryID: m.Field("X-Webhook-Id"),
		Attempt: positive(m.Field("X-Webhook-Delivery-Attempt")),
	}, nil
}
