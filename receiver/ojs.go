package receiver

import (
	"crypto/sha256"
	"net/http"
)

// OJS is the scheme of the Open Job Spec's webhook deliveries. They are deduplicated by delivery id (OJS-DLV-20).
//
// The delivery id is not signed: an attacker who has broken TLS could repeat a captured request under another id within the
// tolerance.
type OJS struct {
	// Secrets lists the accepted secrets, each the whole text as issued. Required.
	Secrets []string
	// Principal names the sender. Deduplication is per principal. Defaults to ojs.
	Principal string
}

// Profile prepares the scheme.
func (s OJS) Profile() (Profile, error) {
	keys, err := textKeys("ojs", s.Secrets, sha256.New)
	if err != nil {
		return Profile{}, err
	}
	success := jsonAnswer(http.StatusOK, received{Received: true})
	scheme := &timestamped{"X-Ojs-Signature", "X-Ojs-Timestamp", ownerOr(s.Principal, "ojs"), keys, false}
	return Profile{
		Name: "ojs", SignsTime: true, AlwaysDedup: true, KeySource: "the header X-OJS-Delivery-ID",
		Authenticate: scheme.authenticate,
		Identify:     identifyOJS,
		Success:      func(Identity) Answer { return success },
	}, nil
}

func identifyOJS(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) {
	key, err := boundedKey(m.Field("X-Ojs-Delivery-Id"), "X-OJS-Delivery-ID")
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Key: key, DeliveryID: key, EventID: key}
	if event, err := parseMembers(m.Body, "id", "type"); err == nil {
		id.EventType = event.text("type")
		if eventID := event.text("id"); eventID != "" {
			id.EventID = eventID
		}
	}
	return id, nil
}

// received is the body of an acknowledgement.
type received struct {
	Received bool   `json:"received"`
	EventID  string `json:"event_id,omitempty"`
}
