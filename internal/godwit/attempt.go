package godwit

import (
	"fmt"
	"time"
)

// An Attempt is the record of one effort to deliver: one request on the wire, one outcome, never changed afterwards.
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

// FailureText says in a few words why the attempt failed. It holds nothing that a receiver wrote.
func (a *Attempt) FailureText() string {
	if a.Verdict.Class == ClassApplication && a.Status != 0 {
		return fmt.Sprintf("HTTP %d", a.Status)
	}
	return string(a.Verdict.Reason)
}

// Trace is the part of an attempt that people read when they ask what happened. It is stored as one document, so that
// an ordinary success costs little.
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
}

// Problem is the kept part of an RFC 9457 document. It is shown to people and decides nothing (EDS-PRB-2).
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title,omitempty"`
	Status int    `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// MaxBodyExcerpt bounds what an attempt record keeps of the response body.
const MaxBodyExcerpt = 4 << 10
