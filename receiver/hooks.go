package receiver

import (
	"net/http"
	"strings"
	"time"
)

// Hooks are called with what a receiver does: for metrics, logs and alerts. They get no payload, secret or signature. A hook
// that panics does not change the answer. Hooks run while a request is served and must be quick. All default to none.
type Hooks struct {
	// OnReceipt is called for every request that reaches the receiver (CCW-RCV-14).
	OnReceipt func(Receipt)
	// OnVerificationFailure is called for every request that is not authentic (CCW-RCV-10).
	OnVerificationFailure func(VerificationFailure)
	// OnDuplicate is called for repeats.
	OnDuplicate func(Duplicate)
	// OnResult is called for every answer.
	OnResult func(Report)
	// OnError is called for internal failures: of the store, the handler, the inbox.
	OnError func(err error, where string)
	// OnWarning is called by New for settings that are weaker than they could be.
	OnWarning func(message string)
	// Count counts "webhook.verification.failed" (CCW-RCV-11).
	Count func(metric string)
}

// MetricVerificationFailed counts requests that are not authentic (CCW-RCV-11).
const MetricVerificationFailed = "webhook.verification.failed"

// A Receipt is a request that reached the receiver.
type Receipt struct {
	Scheme, Method, Path, IP string
}

// A VerificationFailure is a request that is not authentic.
type VerificationFailure struct {
	Scheme string
	Reason Reason
	Error  string
	IP     string
	// Header holds the request's fields; values of credentials are replaced.
	Header http.Header
	// Recent is the number of failures in the last minute, this one included. Many of them mean an attack or a lost secret.
	Recent int
}

// DuplicateKind says what a repeat found.
type DuplicateKind string

// The kinds of repeats.
const (
	DuplicateCompleted    DuplicateKind = "completed"     // the first request is completed
	DuplicateInProgress   DuplicateKind = "in-progress"   // the first request is still being processed
	DuplicateOtherPayload DuplicateKind = "other-payload" // the key was used with another payload
)

// A Duplicate is a repeat.
type Duplicate struct {
	Scheme, Principal, EventID string
	Kind                       DuplicateKind
}

// ReportKind says how a request ended.
type ReportKind string

// The ways in which a request ends.
const (
	KindAccepted   ReportKind = "accepted"
	KindRetryAfter ReportKind = "retry-after"
	KindReject     ReportKind = "reject"
	KindFailed     ReportKind = "failed"   // the handler returned an error or panicked, or its result was invalid
	KindTimeout    ReportKind = "timeout"  // the handler exceeded its time limit
	KindReplayed   ReportKind = "replayed" // a kept answer was given again
	KindRefused    ReportKind = "refused"  // the request did not reach the handler
)

// A Report is an answer.
type Report struct {
	Scheme string
	Status int
	Kind   ReportKind
	// Code is the problem code of a refusal.
	Code ProblemCode
	// Principal, EventID and EventType are empty if the request was refused before they were known.
	Principal, EventID, EventType string
}

// tell calls a hook. A panic of the hook is dropped: a broken metric must not lose an event.
func tell(hook func()) {
	defer func() { _ = recover() }()
	hook()
}

// sanitized are header fields fit for a log.
func sanitized(header http.Header) http.Header {
	safe := make(http.Header, len(header))
	for name, values := range header {
		value := strings.Join(values, ", ")
		if isCredential(name) {
			value = "[redacted]"
		}
		if len(value) > 256 {
			value = value[:256]
		}
		safe[name] = []string{value}
	}
	return safe
}

// recent counts events in the last minute, in slots of a second.
type recent struct {
	slots [60]struct {
		second int64
		count  int
	}
}

func (r *recent) add(now time.Time) (total int) {
	second := now.Unix()
	slot := &r.slots[((second%60)+60)%60]
	if slot.second != second {
		slot.second, slot.count = second, 0
	}
	slot.count++
	for i := range r.slots {
		if age := second - r.slots[i].second; age >= 0 && age < 60 {
			total += r.slots[i].count
		}
	}
	return total
}
