package godwit

import "time"

// An Event is something that happened, as its producer told it: exact bytes, true media type, one key for all attempts.
// It never changes after acceptance.
type Event struct {
	ID          EventID
	TenantID    TenantID
	Type        string
	Key         string // value of Idempotency-Key on every attempt, decoded
	ContentType string
	Body        []byte
	Attributes  map[string]string // what endpoint filters look at; nil when there are none
	Principal   KeyID             // who posted it
	CreatedAt   time.Time
}

// Limits of what an event may carry besides its body.
const (
	MaxEventType       = 128
	MaxAttributes      = 32
	MaxAttributeName   = 64
	MaxAttributeValue  = 256
	DefaultMaxBody     = 1 << 20
	MaxEventsPerBatch  = 1000
	MaxContentTypeSize = 256
)
