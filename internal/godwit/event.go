package godwit

import "time"

// An Event is the exact bytes that a producer posted, with their media type and one key for all attempts. It never changes
// after acceptance.
type Event struct {
	ID          EventID
	TenantID    TenantID
	Type        string
	Key         string // value of Idempotency-Key on every attempt, decoded
	ContentType string
	Body        []byte
	Attributes  map[string]string // attributes for endpoint filters; nil if there are none
	Principal   KeyID             // the API key that posted it
	CreatedAt   time.Time         // when it was accepted

	Format     string    // format of Body: see the constants
	SourceID   string    // the producer's id of the event; empty if the server's id serves
	OccurredAt time.Time // when it happened, as the producer says; zero: when it was accepted

	// The following members are for relayed events and binary CloudEvents; they are usually empty.
	KeptHeaders []KeptHeader // header fields that every attempt sends unchanged
	Origin      Origin       // the source it came through
	CommandID   string       // the command that emitted it
}

// Carried holds the rarely used members of an event, which stores keep as one document. Most events have none.
type Carried struct {
	Headers []KeptHeader `json:"headers,omitempty"`
	Origin  *Origin      `json:"origin,omitempty"`
	Command string       `json:"command,omitempty"`
}

// Carried returns the document of the event's rarely used members, or nil if all are empty.
func (e *Event) Carried() *Carried {
	if len(e.KeptHeaders) == 0 && e.Origin.IsZero() && e.CommandID == "" {
		return nil
	}
	c := &Carried{Headers: e.KeptHeaders, Command: e.CommandID}
	if !e.Origin.IsZero() {
		c.Origin = &e.Origin
	}
	return c
}

// Carry sets the event's members from a stored document.
func (e *Event) Carry(c *Carried) {
	e.KeptHeaders, e.CommandID = c.Headers, c.Command
	if c.Origin != nil {
		e.Origin = *c.Origin
	}
}

// The formats of a body. An envelope already is the wire format of the profile of the same name; other profiles wrap its
// content in their own.
const (
	FormatRaw       = ""          // the producer's own bytes, of any kind
	FormatOJS       = "ojs"       // an Open Job Spec event envelope
	FormatCybercube = "cybercube" // a CYBERCUBE event
)

// Time returns when the event happened.
func (e *Event) Time() time.Time {
	if e.OccurredAt.IsZero() {
		return e.CreatedAt
	}
	return e.OccurredAt
}

// Limits of an event's members besides its body.
const (
	MaxEventType       = 128
	MaxAttributes      = 32
	MaxAttributeName   = 64
	MaxAttributeValue  = 256
	DefaultMaxBody     = 1 << 20
	MaxEventsPerBatch  = 1000
	MaxContentTypeSize = 256
)
