package commit

import (
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Request is stored whole or not at all. Its caller waits for the answer.
type Request struct {
	Tenant  godwit.TenantID
	Accepts []store.Accept
	Fanouts []store.Fanout // of events among Accepts
	Change  *store.EndpointChange
	Notices []godwit.Notice
	// ConfigVersion, when not 0, is the version by which the receivers of Accepts were chosen. The request is stored only if it
	// is still the store's.
	ConfigVersion int64
}

// An Answer is the result of a request.
type Answer struct {
	// Existing has an entry for each accept: nil when it was stored, else the record that existed before.
	Existing []*godwit.IdempotencyRecord
	// Moved says that an accept was not stored because the cursor of its fan-out is elsewhere.
	Moved bool
	// Behind says that nothing was stored, because the configuration has changed since Request.ConfigVersion.
	Behind bool
	// Err says that the request failed; it may have been stored all the same.
	Err error
}

// rows returns about how many rows the request writes.
func (r *Request) rows() int {
	n := 1
	for i := range r.Accepts {
		n += rowsOf(&r.Accepts[i])
	}
	for i := range r.Fanouts {
		n += 1 + 16*(len(r.Fanouts[i].Events)+len(r.Fanouts[i].Endpoints))/RowBytes
	}
	return n
}

func rowsOf(a *store.Accept) int {
	n, bytes := 0, 0
	for i := range a.Events {
		n += 1 + len(a.Events[i].Deliveries)
		bytes += len(a.Events[i].Event.Body)
	}
	return n + bytes/RowBytes
}

// RowBytes is the size of a body that counts as one row of a request.
const RowBytes = 4096

// requestOp is a request in the queue.
type requestOp struct {
	Request
	weight int
	done   chan Answer
}

var requestOps = sync.Pool{New: func() any { return &requestOp{done: make(chan Answer, 1)} }}

// A Record is the new state of a claimed delivery after an attempt, or the return of its claim.
type Record struct {
	Claim  Claim
	Result store.Result
	// Event is the delivery's event.
	Event *godwit.Event
	// Profile is the dialect of the attempt, for measurements.
	Profile string
	Change  *store.EndpointChange
	Notices []godwit.Notice
	// News are events about the result; nil when there are none.
	News *News

	written chan error // gets the error of the first try; nil when no caller waits
}

// News are events about a result. They are stored in the same transaction, so that no result is stored without them. Their ids
// and receivers do not change, so a repeated commit stores nothing twice. They are stored even if the result is refused
// because another node has the delivery: the attempt was made, and the other node reports its own.
type News struct {
	Accept store.Accept
	// Ended is called once: with true when the events are stored, with false when they will never be.
	Ended func(stored bool)
}

func (n *News) end(stored bool) {
	if n != nil {
		n.Ended(stored)
	}
}

// A Claim is the lane's side of a claimed delivery. The committing goroutine calls its methods; they must not block.
type Claim interface {
	// Health returns the endpoint's latest health, to store with the result of an attempt.
	Health() godwit.Health
	// Stored is called when the record is stored.
	Stored(*Record)
	// Refused is called when the store refused the record: the delivery is no longer claimed under its epoch.
	Refused(*Record)
	// Dropped is called when the record can never be stored, or is a return whose outcome is unknown. The delivery may stay claimed in the
	// store.
	Dropped(*Record, error)
}

func (r *Record) rows() int {
	if r.News == nil {
		return 1
	}
	return 1 + rowsOf(&r.News.Accept)
}

// report sends the result to the caller that waits for the record, if there is one.
func (r *Record) report(err error) {
	if r.written != nil {
		r.written <- err
		r.written = nil
	}
}

const strippedDetail = "the response could not be stored"

// strip removes the receiver's text from a record, and at the second call its news, because either may be why the store
// refuses it. It reports whether it removed anything.
func (r *Record) strip() bool {
	if a := r.Result.Attempt; a != nil && a.Trace.Detail != strippedDetail {
		a.Trace = godwit.Trace{Detail: strippedDetail, SignedWith: a.Trace.SignedWith, Actor: a.Trace.Actor}
		a.Verdict.Problem = nil
		for i := range r.Notices {
			r.Notices[i].Link = "" // text of the receiver
		}
		return true
	}
	if r.News == nil {
		return false
	}
	r.News.end(false)
	r.News = nil
	return true
}
