package profile

import (
	"encoding/json"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const jsonType = "application/json"

// A ServerEvent is an event that the server publishes on a tenant's bus.
type ServerEvent struct {
	Type        string
	ContentType string
	Format      string
	Keep        bool // stored even if no endpoint subscribes to it
	Body        func(id godwit.EventID) []byte
}

// Event is the announcement as an event. It is stored for callers that ask later.
func (a *Announcement) Event() ServerEvent {
	return ServerEvent{Type: a.Type, ContentType: jsonType, Format: godwit.FormatOJS, Keep: true, Body: a.Envelope}
}

// A Report is the result of an attempt, or of a delivery whose time has run out.
type Report struct {
	Profile  Profile
	Policy   *godwit.Policy
	Endpoint *godwit.Endpoint
	Event    *godwit.Event
	Delivery *godwit.Delivery
	Attempt  *godwit.Attempt // nil: none was made
	Notices  []godwit.Notice
	At       time.Time
}

// Events returns the server events about the report, by the endpoint's policy: the result of the delivery (Announce), and the
// notices for an account's admins (Alert). Deliveries of server events are not reported: one event would be followed by others
// without end (OJS-OBS-8).
func (r *Report) Events() (events []ServerEvent) {
	if Meta(r.Event.Type) {
		return nil
	}
	if r.Policy.Announce {
		if event, ok := r.announcement(); ok {
			events = append(events, event)
		}
	}
	if r.Policy.Alert {
		for i := range r.Notices {
			if event, ok := r.alert(&r.Notices[i]); ok {
				events = append(events, event)
			}
		}
	}
	return events
}

// announcement says that the delivery was accepted (OJS-OBS-1), will be retried (OJS-OBS-2) or is dead (OJS-OBS-3). A death is
// stored for callers that ask later; the others are stored only if an endpoint subscribes to them.
func (r *Report) announcement() (event ServerEvent, ok bool) {
	d := r.Delivery
	a := Announcement{
		TenantID: d.TenantID, EndpointID: d.EndpointID, DeliveryID: d.ID, EventID: ReceiverEventID(r.Profile, r.Event), EventType: r.Event.Type,
		Attempt: d.Attempts, StatusCode: d.LastStatus, At: r.At,
	}
	if r.Attempt != nil && r.Attempt.Verdict.Outcome != godwit.Accepted {
		a.Error = r.Attempt.FailureText()
	}
	switch {
	case d.Status == godwit.DeliveryAccepted:
		a.Type = AnnounceDelivered
	case d.Status == godwit.DeliveryPending:
		a.Type, a.NextAt = AnnounceFailed, d.DueAt
	case d.Status.Dead():
		a.Type, a.Reason = AnnounceDead, string(d.Reason)
	default:
		return event, false // cancelled
	}
	event = a.Event()
	event.Keep = d.Status.Dead()
	return event, true
}

// alerts maps the notices for an account's admins (CCW-DLQ-3, CCW-HLT-2, CCW-HLT-8) to the last part of the event's type.
var alerts = map[godwit.NoticeKind]string{
	godwit.NoticeDeadLetter:       "delivery_dead",
	godwit.NoticeEndpointDegraded: "endpoint_degraded",
	godwit.NoticeEndpointDisabled: "endpoint_disabled",
}

// alertBody is the body of an alert.
type alertBody struct {
	Kind       string            `json:"kind"`
	EndpointID godwit.EndpointID `json:"endpoint_id"`
	Endpoint   string            `json:"endpoint,omitempty"`
	DeliveryID godwit.DeliveryID `json:"delivery_id"`
	EventID    godwit.EventID    `json:"event_id"`
	EventType  string            `json:"event_type"`
	Reason     string            `json:"reason"`
	At         time.Time         `json:"at"`
}

// alert sends a notice to the endpoints that subscribe to alerts by name.
func (r *Report) alert(n *godwit.Notice) (event ServerEvent, ok bool) {
	kind := alerts[n.Kind]
	if kind == "" {
		return event, false
	}
	body := alertBody{
		Kind: kind, EndpointID: n.EndpointID, DeliveryID: n.DeliveryID, EventID: n.EventID, EventType: r.Event.Type, Reason: n.Detail, At: n.CreatedAt,
	}
	if r.Endpoint.Code != "" {
		body.Endpoint = FormatCode(CodeEndpoint, r.Endpoint.Code)
	}
	return ServerEvent{Type: "godwit.alert." + kind, ContentType: jsonType, Format: godwit.FormatRaw, Body: func(godwit.EventID) []byte {
		text, err := json.Marshal(body)
		if err != nil {
			return nil // texts and ids always encode
		}
		return text
	}}, true
}
