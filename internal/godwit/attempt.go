package godwit

import (
	"fmt"
	"time"
)

// An Attempt is the record of one attempt to deliver: one request on the wire and one outcome. It never changes.
type Attempt struct {
	ID         AttemptID
	DeliveryID DeliveryID
	TenantID   TenantID
	EventID    EventID
	EndpointID EndpointID
	N          int // 1 for the first, over all runs
	Trigger    Trigger
	StartedAt  time.Time
	Duration   time.Duration
	URL        string
	Status     int // 0 when no status line arrived
	Verdict    Verdict
	NextAt     time.Time // when the next attempt is due; zero when there is none
	Trace      Trace
}

// Exhausted reports whether the attempt ended its run because no attempts were left. A test is a run of one attempt, and uses
// up none.
func (a *Attempt) Exhausted() bool {
	return a.Verdict.Outcome == Transient && a.NextAt.IsZero() && a.Trigger != TriggerTest
}

// FailureText says in a few words why the attempt failed. It holds no text from a receiver.
func (a *Attempt) FailureText() string {
	if a.Verdict.Class == ClassApplication && a.Status != 0 {
		return fmt.Sprintf("HTTP %d", a.Status)
	}
	return string(a.Verdict.Reason)
}

// Trace holds the details of an attempt for diagnosis. It is stored as one document, so that an ordinary success costs
// little.
type Trace struct {
	Proto       string   `json:"proto,omitempty"`
	RemoteAddr  string   `json:"remote_addr,omitempty"`
	Hops        []Hop    `json:"hops,omitempty"`
	Body        string   `json:"response_body,omitempty"` // excerpt, valid UTF-8
	ContentType string   `json:"response_content_type,omitempty"`
	Link        string   `json:"link,omitempty"`
	RetryAfter  string   `json:"retry_after,omitempty"` // as received, also where it has no effect (EDS T-24)
	Problem     *Problem `json:"problem,omitempty"`
	Detail      string   `json:"detail,omitempty"`
	SignedWith  []string `json:"signed_with,omitempty"` // key ids
	Actor       string   `json:"actor,omitempty"`
	Wire        *Wire    `json:"wire,omitempty" hidden:"true"` // the API shows it as members of the attempt
}

// Wire is how an attempt went over the wire.
type Wire struct {
	Timing WireTiming `json:"t,omitzero"`
	// Request and Response are header fields as "Name: value", secrets masked; of acknowledged attempts only of a sample.
	Request  []string `json:"q,omitempty"`
	Response []string `json:"p,omitempty"`
	Cut      bool     `json:"c,omitempty"` // the excerpt of the response body is not the whole
}

// WireTiming is a Timing in microseconds: DNS, connect, TLS, first byte.
type WireTiming [4]int64

// NewWireTiming encodes a timing.
func NewWireTiming(t Timing) WireTiming {
	return WireTiming{t.DNS.Microseconds(), t.Connect.Microseconds(), t.TLS.Microseconds(), t.FirstByte.Microseconds()}
}

// Empty reports whether nothing is known.
func (w *Wire) Empty() bool {
	return w == nil || w.Timing == WireTiming{} && len(w.Request) == 0 && len(w.Response) == 0 && !w.Cut
}

// Problem holds the stored members of an RFC 9457 document. It is shown to people and decides nothing (EDS-PRB-2).
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title,omitempty"`
	Status int    `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// MaxBodyExcerpt limits the excerpt of the response body in an attempt record.
const MaxBodyExcerpt = 4 << 10
