package godwit

import "time"

// A Notice reports an event that an operator should know or decide about: an endpoint was disabled, has moved, refuses for
// legal reasons, or resolves to a forbidden address.
type Notice struct {
	ID             NoticeID
	TenantID       TenantID
	EndpointID     EndpointID
	DeliveryID     DeliveryID // zero if the notice is about the endpoint
	EventID        EventID
	Kind           NoticeKind
	Detail         string
	Link           string // from a 451's Link field
	CreatedAt      time.Time
	AcknowledgedAt time.Time
	AcknowledgedBy string
}

// NoticeKind is a stable code.
type NoticeKind string

// The kinds of notice.
const (
	NoticeEndpointDisabled NoticeKind = "endpoint-disabled"
	NoticeEndpointDegraded NoticeKind = "endpoint-degraded"
	NoticeEndpointEnabled  NoticeKind = "endpoint-enabled" // automatically, after a period of rest
	NoticeDeadLetter       NoticeKind = "delivery-dead"
	NoticeEndpointMoved    NoticeKind = "endpoint-moved"
	NoticeLegalReview      NoticeKind = "legal-review"
	NoticeMultiStatus      NoticeKind = "207-without-agreement"
	NoticeBlockedAddress   NoticeKind = "blocked-address"
)
