package godwit

import "time"

// An Event is something that happened, in the words of its producer: exact bytes, true media type, one key for all attempts.
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
	CreatedAt   time.Time         // when it was accepted

	Format     string    // what Body is: see the constants
	SourceID   string    // the id its producer gave it; empty when that is ours
	OccurredAt time.Time // when it happened, by its producer's word; zero: when it was accepted

	// What a relayed event, or one told in binary CloudEvents, brings along; both empty in the ordinary case.
	KeptHeaders []KeptHeader // header fields that every attempt carries as they came
	Origin      Origin       // the source it came by
	CommandID   string       // the command that emitted it
}

// Carried is the document that stores keep for the rarer members of an event. Most events have none.
type Carried struct {
	Headers []KeptHeader `json:"headers,omitempty"`
	Origin  *Origin      `json:"origin,omitempty"`
	Command string       `json:"command,omitempty"`
}

// Carried is nil when there is nothing.
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

// Carry gives an event back what was stored of it.
func (e *Event) Carry(c *Carried) {
	e.KeptHeaders, e.CommandID = c.Headers, c.Command
	if c.Origin != nil {
		e.Origin = *c.Origin
	}
}

// The formats of a body. An envelope already is what the profile of the same name puts on the wire; other profiles wrap
// what it carries in their own.
const (
	FormatRaw       = ""          // the producer's own bytes, whatever they are
	FormatOJS       = "ojs"       // an Open Job Spec event envelope
	FormatCybercube = "cybercube" // a CYBERCUBE event
)

// Time is when the event happened.
func (e *Event) Time() time.Time {
	if e.OccurredAt.IsZero() {
		return e.CreatedAt
	}
	return e.OccurredAt
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
