package profile

import (
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// The types of the events about deliveries and subscriptions (OJS-OBS-1..5).
const (
	AnnounceDelivered           = "webhook.delivered"
	AnnounceFailed              = "webhook.failed" // an attempt failed and another will follow
	AnnounceDead                = "webhook.dead"
	AnnounceSubscriptionCreated = "webhook.subscription.created"
	AnnounceSubscriptionDeleted = "webhook.subscription.deleted"
)

// announceSource is the source in the envelope of these events.
const announceSource = "ojs://godwit/webhooks"

// An Announcement is an event about a delivery or a subscription, on the tenant's own bus. It has no member for a secret or a
// receiver's response, so that neither can appear in it (OJS-OBS-7).
type Announcement struct {
	Type       string
	TenantID   godwit.TenantID // owner of the bus; not in the envelope
	EndpointID godwit.EndpointID
	DeliveryID godwit.DeliveryID // zero if it is about the subscription
	EventID    string            // as the receiver saw it
	EventType  string
	Attempt    int
	StatusCode int       // 0 if no response arrived
	Error      string    // a stable code or a short text free of secrets
	Reason     string    // why a delivery is dead
	NextAt     time.Time // of the next attempt; zero if there is none
	At         time.Time
}

// Meta reports whether events of this type are about the server's own actions. Their deliveries are not announced: one event
// would be followed by others without end (OJS-OBS-8).
func Meta(eventType string) bool {
	return strings.HasPrefix(eventType, "webhook.") || strings.HasPrefix(eventType, "godwit.")
}

// Envelope renders the announcement as the Open Job Spec event with the given id (OJS-OBS-6). Empty members are left out.
func (a *Announcement) Envelope(id godwit.EventID) []byte {
	subject := a.EndpointID.String()
	if !a.DeliveryID.IsZero() {
		subject = a.DeliveryID.String()
	}
	data := make([]byte, 0, 384)
	data = append(data, '{')
	if !a.DeliveryID.IsZero() {
		data = appendMember(data, "delivery_id", a.DeliveryID.String())
	}
	if !a.EndpointID.IsZero() {
		data = appendMember(data, "subscription_id", a.EndpointID.String())
	}
	data = appendMember(data, "event_id", a.EventID)
	data = appendMember(data, "event_type", a.EventType)
	data = appendNumber(data, "attempt", a.Attempt)
	data = appendNumber(data, "status_code", a.StatusCode)
	data = appendMember(data, "error", a.Error)
	data = appendMember(data, "reason", a.Reason)
	if !a.NextAt.IsZero() {
		data = appendTime(data, "next_attempt_at", ojsTime, a.NextAt)
	}
	data = append(data, '}')
	return OJSEnvelope(OJSEvent{
		ID: id.String(), Type: a.Type, Source: announceSource, Time: a.At, Subject: subject, Data: data,
	})
}

// appendNumber adds an integer member to an object; zero adds nothing.
func appendNumber(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(appendName(b, name), int64(n), 10)
}
