package godwit

import "time"

// NewTenantID mints the id of a tenant.
func NewTenantID(now time.Time) TenantID { return NewID[tenantKind](now) }

// NewKeyID mints the id of a key.
func NewKeyID(now time.Time) KeyID { return NewID[keyKind](now) }

// NewEndpointID mints the id of an endpoint.
func NewEndpointID(now time.Time) EndpointID { return NewID[endpointKind](now) }

// NewSecretID mints the id of a secret.
func NewSecretID(now time.Time) SecretID { return NewID[secretKind](now) }

// NewEventID mints the id of an event.
func NewEventID(now time.Time) EventID { return NewID[eventKind](now) }

// NewDeliveryID mints the id of a delivery.
func NewDeliveryID(now time.Time) DeliveryID { return NewID[deliveryKind](now) }

// NewAttemptID mints the id of an attempt.
func NewAttemptID(now time.Time) AttemptID { return NewID[attemptKind](now) }

// NewNoticeID mints the id of a notice.
func NewNoticeID(now time.Time) NoticeID { return NewID[noticeKind](now) }

// NewSourceID mints the id of a source.
func NewSourceID(now time.Time) SourceID { return NewID[sourceKind](now) }

// NewAcknowledgmentID mints the id of an acknowledgment.
func NewAcknowledgmentID(now time.Time) AcknowledgmentID { return NewID[acknowledgmentKind](now) }

// NewRejectionID mints the id of a rejection.
func NewRejectionID(now time.Time) RejectionID { return NewID[rejectionKind](now) }

// NewCommandID mints the id of a command.
func NewCommandID(now time.Time) CommandID { return NewID[commandKind](now) }

// NewEnvironmentID mints the id of an environment.
func NewEnvironmentID(now time.Time) EnvironmentID { return NewID[environmentKind](now) }

// NewBroadcastID mints the id of a broadcast.
func NewBroadcastID(now time.Time) BroadcastID { return NewID[broadcastKind](now) }

// NewSessionID mints the id of a session.
func NewSessionID(now time.Time) SessionID { return NewID[sessionKind](now) }

// NewLinkID mints the id of a sign-in link.
func NewLinkID(now time.Time) LinkID { return NewID[linkKind](now) }

// ParseTenantID reads the text form.
func ParseTenantID(s string) (TenantID, error) { return ParseID[tenantKind](s) }

// ParseKeyID reads the text form.
func ParseKeyID(s string) (KeyID, error) { return ParseID[keyKind](s) }

// ParseEndpointID reads the text form.
func ParseEndpointID(s string) (EndpointID, error) { return ParseID[endpointKind](s) }

// ParseSecretID reads the text form.
func ParseSecretID(s string) (SecretID, error) { return ParseID[secretKind](s) }

// ParseEventID reads the text form.
func ParseEventID(s string) (EventID, error) { return ParseID[eventKind](s) }

// ParseDeliveryID reads the text form.
func ParseDeliveryID(s string) (DeliveryID, error) { return ParseID[deliveryKind](s) }

// ParseAttemptID reads the text form.
func ParseAttemptID(s string) (AttemptID, error) { return ParseID[attemptKind](s) }

// ParseNoticeID reads the text form.
func ParseNoticeID(s string) (NoticeID, error) { return ParseID[noticeKind](s) }

// ParseSourceID reads the text form.
func ParseSourceID(s string) (SourceID, error) { return ParseID[sourceKind](s) }

// ParseEnvironmentID reads the text form.
func ParseEnvironmentID(s string) (EnvironmentID, error) { return ParseID[environmentKind](s) }

// ParseBroadcastID reads the text form.
func ParseBroadcastID(s string) (BroadcastID, error) { return ParseID[broadcastKind](s) }

// ParseSessionID reads the text form.
func ParseSessionID(s string) (SessionID, error) { return ParseID[sessionKind](s) }

// ParseLinkID reads the text form.
func ParseLinkID(s string) (LinkID, error) { return ParseID[linkKind](s) }
