package receiver

import (
	"net/http"
	"strings"
	"time"
)

// Hooks are told what a receiver does: for metrics, logs, alerts. None ever gets a payload, a secret or a signature; one
// that panics changes nothing about the answer. They are called while a request is served and must be quick. All default
// to none.
type Hooks struct {
	// OnReceipt hears of every request that reaches the receiver (CCW-RCV-14).
	OnReceipt func(Receipt)
	// OnVerificationFailure hears of every request that did not prove itself (CCW-RCV-10).
	OnVerificationFailure func(VerificationFailure)
	// OnDuplicate hears of repeats.
	OnDuplicate func(Duplicate)
	// OnResult hears of every answer.
	OnResult func(Report)
	// OnError hears of failures of ours: of the store, the handler, the inbox.
	OnError func(err error, where string)
	// OnWarning hears, when the receiver is made, where its configuration is weaker than it could be.
	OnWarning func(message string)
	// Count counts "webhook.verification.failed" (CCW-RCV-11).
	Count func(metric string)
}

// MetricVerificationFailed is counted for every request that did not prove itself (CCW-RCV-11).
const MetricVerificationFailed = "webhook.verification.failed"

// A Receipt is a request that reached the receiver.
type Receipt struct {
	Scheme, Method, Path, IP string
}

// A VerificationFailure is a request that did not prove itself.
type VerificationFailure struct {
	Scheme string
	Reason Reason
	Error  string
	IP     string
	// Header holds the request's fields; values of credentials are replaced.
	Header http.Header
	// Recent is how many there were in the last minute, this one included: many of them are an attack or a lost secret.
	Recent int
}

// DuplicateKind says what a repeat met.
type DuplicateKind string

// What a repeat may meet.
const (
	DuplicateCompleted    DuplicateKind = "completed"     // the first one's result
	DuplicateInProgress   DuplicateKind = "in-progress"   // the first one, still being processed
	DuplicateOtherPayload DuplicateKind = "other-payload" // the key with another payload
)

// A Duplicate is a repeat.
type Duplicate struct {
	Scheme, Principal, EventID string
	Kind                       DuplicateKind
}

// ReportKind says how a request ended.
type ReportKind string

// How a request may end.
const (
	KindAccepted   ReportKind = "accepted"
	KindRetryAfter ReportKind = "retry-after"
	KindReject     ReportKind = "reject"
	KindFailed     ReportKind = "failed"   // the handler returned an error or panicked, or its result was unfit
	KindTimeout    ReportKind = "timeout"  // the handler's time was over
	KindReplayed   ReportKind = "replayed" // a kept answer was given again
	KindRefused    ReportKind = "refused"  // the request did not come as far as the handler
)

// A Report is an answer.
type Report struct {
	Scheme string
	Status int
	Kind   ReportKind
	// Code is that of a refusal.
	Code ProblemCode
	// Principal, EventID and EventType are empty if the request did not come that far.
	Principal, EventID, EventType string
}

// tell calls a hook. What it panics with is dropped: a broken metric must not lose an event.
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

// recent counts what happened in the last minute, in slots of a second.
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
