package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// An Inbox keeps deliveries that are acknowledged and not yet processed. A delivery is stored before its sender gets a 2xx, and
// removed when a worker has finished it. Every method is one atomic step.
//
//	Enqueue ─► waiting ─► claimed by a worker, under a lease ─┬─► done
//	              ▲                                           ├─► dead: refused by the handler, or out of attempts
//	              └─────── later: failed, or lease over ◄─────┘
//
// A job's id is the scope of its delivery, so that enqueueing twice (after a crash between inbox and acknowledgement) makes one
// job. Packages sqlitestore and postgresstore have inboxes.
type Inbox interface {
	Enqueuer
	// Claim leases up to limit due jobs, the longest due first. A new job is due when it was received.
	Claim(ctx context.Context, limit int, now, leaseUntil time.Time) ([]ClaimedJob, error)
	// Settle ends a worker's hold on a job. It reports false, and changes nothing, if the worker no longer has the job.
	Settle(ctx context.Context, j ClaimedJob, s Settlement) (bool, error)
	// PurgeJobs drops at most limit jobs that were done before a time and returns how many it dropped. Dead jobs stay for
	// inspection.
	PurgeJobs(ctx context.Context, before time.Time, limit int) (int, error)
}

// A JobTransactor is an inbox that can commit a handler's effect together with the end of its job.
type JobTransactor interface {
	Inbox
	// BeginJob starts a transaction for a worker. It fails with [ErrLeaseLost] if the job is no longer the worker's.
	BeginJob(ctx context.Context, j ClaimedJob) (JobTx, error)
}

// A JobTx is a transaction that commits with the end of a job, or has no effect.
type JobTx interface {
	// Context passes the transaction to a handler, which gets it from the store's own package.
	Context(ctx context.Context) context.Context
	// Settle ends the hold and commits. It reports false, and has rolled back, if the worker no longer has the job.
	Settle(ctx context.Context, s Settlement) (bool, error)
	// Rollback undoes everything. After Settle it does nothing.
	Rollback(ctx context.Context) error
}

// A Job is a delivery to be processed. Its JSON form suits your own queue: name, data and the whole delivery, without
// credentials.
type Job struct {
	// ID is the same for every repeat of the delivery.
	ID       string
	Delivery *Delivery
	// Replaces is the start of the deduplication window: a job with the same id that ended before it belongs to another event.
	Replaces time.Time
}

// JobName is the name under which queues know the job (CCW-RCV-7).
const JobName = "process-webhook"

// JobData is what CYBERCUBE's standard puts into a queue (CCW-RCV-7).
type JobData struct {
	EventID   string `json:"event_id"`
	EventType string `json:"event_type"`
	// Payload is the body as JSON if it is an object in UTF-8, else its bytes in base64.
	Payload    json.RawMessage `json:"payload"`
	ReceivedAt string          `json:"received_at"`
}

// A ClaimedJob is a job that a worker holds.
type ClaimedJob struct {
	Job
	// Attempt is 1 for the first.
	Attempt int
	// Token identifies the worker that holds the job.
	Token string
}

// JobState is the state of a job.
type JobState string

// The states of a job. A claimed job returns to waiting, or ends.
const (
	JobWaiting JobState = "waiting"
	JobClaimed JobState = "claimed"
	JobDone    JobState = "done"
	JobDead    JobState = "dead"
)

// A Settlement is how a worker's hold on a job ends.
type Settlement struct {
	// State is JobDone, JobDead, or JobWaiting for another attempt.
	State JobState
	// At is when it ended, or when it is due again.
	At time.Time
	// Reason is kept for inspection.
	Reason string
	// Interrupted says that the worker was stopped; the job does not lose an attempt.
	Interrupted bool
}

// enqueue stores the delivery before it is acknowledged (CT-7).
func (x *exchange) enqueue(d *Delivery) error {
	ctx, cancel := x.storeContext()
	defer cancel()
	j := Job{ID: x.r.scopeOf(d).String(), Delivery: d, Replaces: d.ReceivedAt.Add(-x.r.window)}
	if err := x.r.o.Inbox.Enqueue(ctx, j); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// storedJob is a job as JSON.
type storedJob struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Data     JobData         `json:"data"`
	Delivery *storedDelivery `json:"delivery"`
}

type storedDelivery struct {
	Scheme     string         `json:"profile"`
	Principal  string         `json:"principal"`
	Identity   storedIdentity `json:"identity"`
	Method     string         `json:"method,omitempty"`
	URL        string         `json:"url"`
	Headers    [][2]string    `json:"headers"`
	Body       []byte         `json:"body"`
	SignedAt   string         `json:"signed_at,omitempty"`
	ReceivedAt string         `json:"received_at"`
}

type storedIdentity struct {
	Key        string `json:"key"`
	EventID    string `json:"eventId"`
	EventType  string `json:"eventType"`
	DeliveryID string `json:"deliveryId,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
}

const storedTime = "2006-01-02T15:04:05.000000Z"

// Data is the job as CYBERCUBE's standard has it.
func (j Job) Data() JobData {
	d := j.Delivery
	data := JobData{EventID: d.EventID, EventType: d.EventType, ReceivedAt: d.ReceivedAt.UTC().Format(storedTime)}
	if _, err := parseMembers(d.Body); err == nil && json.Valid(d.Body) && utf8.Valid(d.Body) { // otherwise a database may refuse it
		data.Payload = d.Body
	} else if data.Payload, err = json.Marshal(d.Body); err != nil {
		data.Payload = []byte("null")
	}
	return data
}

// MarshalJSON writes the job with its whole delivery. Fields that hold credentials are left out; they are not needed after
// verification.
func (j Job) MarshalJSON() ([]byte, error) {
	d := j.Delivery
	if d == nil {
		return nil, errors.New("encode job: no delivery")
	}
	s := &storedDelivery{
		Scheme: d.Scheme, Principal: d.Principal, Identity: storedIdentity(d.Identity), Method: d.Method, URL: d.URL, Headers: [][2]string{},
		Body: d.Body, ReceivedAt: d.ReceivedAt.UTC().Format(storedTime),
	}
	if s.Body == nil {
		s.Body = []byte{} // null would not be a string
	}
	if !d.SignedAt.IsZero() {
		s.SignedAt = d.SignedAt.UTC().Format(storedTime)
	}
	for name, values := range d.Header {
		if isCredential(name) {
			continue
		}
		for _, value := range values {
			s.Headers = append(s.Headers, [2]string{strings.ToLower(name), value})
		}
	}
	slices.SortStableFunc(s.Headers, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return json.Marshal(storedJob{j.ID, JobName, j.Data(), s})
}

// UnmarshalJSON restores a job.
func (j *Job) UnmarshalJSON(text []byte) error {
	var stored storedJob
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("decode job: %w", err)
	}
	s := stored.Delivery
	if s == nil {
		return errors.New("decode job: no delivery")
	}
	d := &Delivery{
		Scheme: s.Scheme, Principal: s.Principal, Identity: Identity(s.Identity), Method: s.Method, URL: s.URL, Header: http.Header{}, Body: s.Body,
	}
	for _, field := range s.Headers {
		d.Header.Add(field[0], field[1])
	}
	d.ContentType = d.Header.Get("Content-Type")
	var err error
	if d.ReceivedAt, err = time.Parse(time.RFC3339, s.ReceivedAt); err != nil {
		return fmt.Errorf("decode job: %w", err)
	}
	if s.SignedAt != "" {
		if d.SignedAt, err = time.Parse(time.RFC3339, s.SignedAt); err != nil {
			return fmt.Errorf("decode job: %w", err)
		}
	}
	j.ID, j.Delivery = stored.ID, d
	return nil
}
