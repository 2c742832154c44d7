package profile

import (
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// The types of the events that tell of deliveries and subscriptions (OJS-OBS-1..5).
const (
	AnnounceDelivered           = "webhook.delivered"
	AnnounceFailed              = "webhook.failed" // an attempt failed and there will be another
	AnnounceDead                = "webhook.dead"
	AnnounceSubscriptionCreated = "webhook.subscription.created"
	AnnounceSubscriptionDeleted = "webhook.subscription.deleted"
)

// announceSource is where these events come from, as their envelope says it.
const announceSource = "ojs://godwit/webhooks"

// An Announcement tells of a delivery's or a subscription's fate on the tenant's own bus. It has no member for a secret
// or for what a receiver answered, so that none can slip into it (OJS-OBS-7).
type Announcement struct {
	Type       string
	TenantID   godwit.TenantID // whose bus it goes to; not in the envelope
	EndpointID godwit.EndpointID
	DeliveryID godwit.DeliveryID // zero when it is about the subscription
	EventID    string            // as the receiver saw it
	EventType  string
	Attempt    int
	StatusCode int       // 0 when no answer arrived
	Error      string    // what went wrong, in a stable code or a short text free of secrets
	Reason     string    // why a delivery is dead
	NextAt     time.Time // of the next attempt; zero when there is none
	At         time.Time
}

// Meta reports whether events of this type tell of the server's own doing. Nothing is announced about their deliveries,
// or one event would be followed by others without end (OJS-OBS-8).
func Meta(eventType string) bool {
	return strings.HasPrefix(eventType, "webhook.") || strings.HasPrefix(eventType, "godwit.")
}

// Envelope renders the announcement as the Open Job Spec event with the given id (OJS-OBS-6). Members that say nothing
// are left out.
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

// appendNumber adds an integer member to an object that is being written; zero adds nothing.
func appendNumber(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(appendName(b, name), int64(n), 10)
}
