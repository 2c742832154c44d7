package commit

import (
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Request is stored whole or not at all, and its caller waits for the answer.
type Request struct {
	Tenant  godwit.TenantID
	Accepts []store.Accept
	Fanouts []store.Fanout // of events among Accepts
	Change  *store.EndpointChange
	Notices []godwit.Notice
}

// An Answer is what became of a request.
type Answer struct {
	// Existing has an entry for each accept: nil when it was stored, else the record that was there before.
	Existing []*godwit.IdempotencyRecord
	// Moved says that an accept was a part of a fan-out that stands elsewhere. It was not stored.
	Moved bool
	// Err says that the request is not known to be stored.
	Err error
}

// rows is how many rows the request writes, about.
func (r *Request) rows() int {
	n := 1
	for i := range r.Accepts {
		n += rowsOf(&r.Accepts[i])
	}
	for i := range r.Fanouts {
		n += 1 + 16*(len(r.Fanouts[i].Events)+len(r.Fanouts[i].Endpoints))/rowBytes
	}
	return n
}

func rowsOf(a *store.Accept) int {
	n, bytes := 0, 0
	for i := range a.Events {
		n += 1 + len(a.Events[i].Deliveries)
		bytes += len(a.Events[i].Event.Body)
	}
	return n + bytes/rowBytes
}

// rowBytes is how much of a body counts as a row.
const rowBytes = 4096

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
	// News are events that tell of the result; nil when there are none.
	News *News

	written chan error // gets the first attempt's error; nil when no caller waits
}

// News are events that tell of a result. They are stored in one transaction with it, so that no result is there without
// them. Their ids and receivers are fixed when they are made: a commit that has to be repeated stores nothing twice. They are
// stored also when the result is refused because the delivery is another node's by now: the attempt was made, and that node will
// tell of its own.
type News struct {
	Accept store.Accept
	// Ended is called once: with true when the events are stored, with false when they never will be.
	Ended func(stored bool)
}

func (n *News) end(stored bool) {
	if n != nil {
		n.Ended(stored)
	}
}

// A Claim is a claimed delivery as its holder sees it. Its methods are called on the goroutine that commits and must not
// block.
type Claim interface {
	// Health is the endpoint's latest health, to be stored with the result of an attempt.
	Health() godwit.Health
	// Stored says that the record is in the store.
	Stored(*Record)
	// Refused says that the store did not take the record: the delivery is no longer claimed under its epoch.
	Refused(*Record)
	// Dropped says that this record can never be stored. The delivery's claim stands in the store.
	Dropped(*Record, error)
}

func (r *Record) rows() int {
	if r.News == nil {
		return 1
	}
	return 1 + rowsOf(&r.News.Accept)
}

// report tells the caller that waits for the record, if there is one.
func (r *Record) report(err error) {
	if r.written != nil {
		r.written <- err
		r.written = nil
	}
}

const strippedDetail = "the response could not be stored"

// strip removes from a record what a receiver could have put into it, and at the second call the news of it, so that
// neither makes an outcome impossible to store. It reports whether there was anything to remove.
func (r *Record) strip() bool {
	if a := r.Result.Attempt; a != nil && a.Trace.Detail != strippedDetail {
		a.Trace = godwit.Trace{Detail: strippedDetail, SignedWith: a.Trace.SignedWith, Actor: a.Trace.Actor}
		a.Verdict.Problem = nil
		for i := range r.Notices {
			r.Notices[i].Link = "" // a text of the receiver
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
