package godwit

import "time"

// A Notice tells an operator of something a person should know or decide: an endpoint was disabled, has moved, refuses
// for legal reasons, resolves to a forbidden address.
type Notice struct {
	ID             NoticeID
	TenantID       TenantID
	EndpointID     EndpointID
	DeliveryID     DeliveryID // zero when it is about the endpoint
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
	NoticeEndpointEnabled  NoticeKind = "endpoint-enabled" // by itself, after a time of rest
	NoticeDeadLetter       NoticeKind = "delivery-dead"
	NoticeEndpointMoved    NoticeKind = "endpoint-moved"
	NoticeLegalReview      NoticeKind = "legal-review"
	NoticeMultiStatus      NoticeKind = "207-without-agreement"
	NoticeBlockedAddress   NoticeKind = "blocked-address"
)
