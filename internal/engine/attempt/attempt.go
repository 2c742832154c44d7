package attempt

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store"
)

// Config configures a maker.
type Config struct {
	Sender    Sender
	Ring      *keyring.Ring
	Clock     clock.Clock
	Log       *slog.Logger
	TimeScale godwit.TimeScale
	Draw      func() float64 // source of jitter: uniform in [0,1)
	// Keys reads the signing keys of an environment, or of all if the id is zero.
	Keys func(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)
}

// Sender makes the requests.
type Sender interface {
	Send(ctx context.Context, r *sender.Request) godwit.Exchange
	CheckURL(raw string) error
	CheckRedirect(from, to string) error
}

// A Maker prepares targets, sends jobs to them and judges the answers. It keeps no state of deliveries.
type Maker struct {
	cfg        Config
	jumps      *clock.Jumps
	identities identities
	terms      sharedTerms
	samples    sampler
}

// NewMaker returns a Maker with the configuration.
func NewMaker(cfg Config) *Maker {
	return &Maker{cfg: cfg, jumps: clock.NewJumps(cfg.Clock), identities: identities{
		read: cfg.Keys, known: map[godwit.EnvironmentID]*identity{}, stale: map[godwit.EnvironmentID]bool{},
	}}
}

// Jumps returns how far the clock was set forward.
func (m *Maker) Jumps() *clock.Jumps { return m.jumps }

// A Job is a claimed delivery that is about to be sent, or is in flight.
type Job struct {
	Work    godwit.Work
	Epoch   int64            // of the lease it was claimed under
	Trigger godwit.Trigger   // of the next attempt
	Budget  profile.Budget   // rest of the endpoint's allowance at the start of the attempt
	ID      godwit.AttemptID // of the latest attempt

	moves  int            // permanent redirects since it was claimed
	signer profile.Signer // of the attempt
	sent   int64          // body of the attempt's request
}

// NewJob makes the job of a new delivery. It is due since its event's creation, as in the store.
func NewJob(event *godwit.Event, endpoint godwit.EndpointID, id godwit.DeliveryID, trigger godwit.Trigger) Job {
	return Job{Trigger: trigger, Work: godwit.Work{Event: event, Delivery: godwit.NewDelivery(id, event, endpoint, trigger, event.CreatedAt)}}
}

// Send makes one request for the job. If the receiver rejects the token, Send discards it.
func (m *Maker) Send(ctx context.Context, t *Target, job *Job) godwit.Exchange {
	x, token := m.exchange(ctx, t, job)
	if x.Status == http.StatusUnauthorized && token != "" {
		t.token.Invalidate(token)
	}
	return x
}

// exchange makes the request. It returns the token it used, if the endpoint has renewable ones.
func (m *Maker) exchange(ctx context.Context, t *Target, job *Job) (x godwit.Exchange, token string) {
	var err error
	now := m.cfg.Clock.Now()
	job.ID, job.signer, job.sent = godwit.NewAttemptID(now), nil, 0
	if t.broken != nil {
		return godwit.Exchange{URL: t.Endpoint.URL, Started: now,
			Failure: &godwit.Failure{Kind: godwit.FailureCredential, Detail: t.broken.Error()}}, ""
	}
	if job.signer, err = t.signerFor(job.Work.Event); err != nil {
		return godwit.Exchange{URL: t.Endpoint.URL, Started: now,
			Failure: &godwit.Failure{Kind: godwit.FailureInvalidRequest, Detail: err.Error()}}, ""
	}
	d := &job.Work.Delivery
	header, body := t.Profile.Render(profile.Message{
		Event: job.Work.Event, Delivery: d, Attempt: d.Attempts + 1, ID: job.ID, Endpoint: &t.Endpoint, Account: t.account, Test: t.test,
		Budget: job.Budget,
	})
	job.sent = int64(len(body))
	x = m.cfg.Sender.Send(ctx, &sender.Request{
		Method:  t.Endpoint.Method,
		URL:     t.Endpoint.URL,
		Header:  header,
		Body:    body,
		Timeout: t.Policy.Timeout,
		Prepare: func(r *http.Request, otherOrigin bool) (err error) {
			token, err = t.prepare(r, job.signer, body, otherOrigin, m.cfg.Clock.Now())
			return err
		},
		FreshConnection:   d.Reason == godwit.ReasonMisdirected,
		KeepHeader:        m.samples.take(now.Unix()),
		ClientCertificate: t.cert,
		Follow:            sender.Redirects{Statuses: t.follow, MaxHops: t.Policy.MaxHops, AnyHost: t.Policy.AnyHost},
	})
	return x, token
}

// A Situation is the endpoint's state that Judge needs besides the target.
type Situation struct {
	SunsetAt time.Time // announced by an earlier answer; zero when none was
	Deleted  bool      // the endpoint was deleted while the request was in flight
}

// Judge classifies the exchange and decides the next step. The record holds everything to store.
func (m *Maker) Judge(t *Target, job *Job, x *godwit.Exchange, s Situation) (*commit.Record, *godwit.Decision) {
	now := m.cfg.Clock.Now()
	verdict := Classify(t, x, now)
	change := m.checkMove(t, job, x, &verdict)

	d := job.Work.Delivery
	d.Attempted(x.Started)
	decision := m.decide(t, &d.Run, &verdict, s, now)
	d.Follow(&decision, x.Status, now)

	attempt := &godwit.Attempt{
		ID: job.ID, DeliveryID: d.ID, TenantID: d.TenantID, EventID: d.EventID,
		EndpointID: d.EndpointID, N: d.Attempts, Trigger: job.Trigger, StartedAt: x.Started, Duration: x.Duration,
		URL: x.URL, Status: x.Status, Verdict: verdict, NextAt: decision.At, Trace: traceOf(t, job, x, &verdict),
	}
	if job.Trigger == d.Run.Trigger {
		attempt.Trace.Actor = d.Run.Actor
	}
	r := &commit.Record{
		Result: store.Result{Delivery: d, Attempt: attempt, Epoch: job.Epoch, BytesSent: job.sent}, Event: job.Work.Event, Profile: t.Endpoint.Profile, Change: change,
	}
	if d.Status.Dead() {
		r.Result.Event, r.Result.LastDetail = job.Work.Event, lastDetail(x, &verdict)
	}
	if decision.Trigger == godwit.TriggerRefresh || decision.Trigger == godwit.TriggerMoved {
		job.Trigger = decision.Trigger
		r.Result.KeepClaim = true
	}
	return r, &decision
}

func (m *Maker) decide(t *Target, run *godwit.Run, v *godwit.Verdict, s Situation, now time.Time) godwit.Decision {
	counted := *run
	counted.FirstAt = budgetStart(t, run)
	sunset := v.SunsetAt
	if sunset.IsZero() {
		sunset = s.SunsetAt
	}
	moment := godwit.Moment{Now: now, SunsetAt: sunset, Scale: m.cfg.TimeScale, Draw: m.cfg.Draw}
	decision := godwit.Decide(t.Policy, v, &counted, moment)
	if decision.Reason == godwit.ReasonTimeExhausted || decision.Reason == godwit.ReasonRetryAfterBudget {
		if ahead := m.jumps.Ahead(counted.FirstAt, now); ahead > 0 { // the clock was set forward: less time has passed than it shows
			counted.FirstAt = counted.FirstAt.Add(ahead)
			decision = godwit.Decide(t.Policy, v, &counted, moment)
		}
	}
	if decision.Status == godwit.DeliveryPending && s.Deleted {
		return godwit.Decision{Status: godwit.DeliveryCancelled, Reason: godwit.ReasonEndpointDeleted}
	}
	return decision
}

// Classify classifies an exchange by the target's profile.
func Classify(t *Target, x *godwit.Exchange, now time.Time) godwit.Verdict {
	if t.Profile == nil { // the profile is unknown, so nothing was sent
		return godwit.Verdict{Outcome: godwit.Transient, Class: godwit.ClassTransport, Reason: godwit.Reason(x.Failure.Kind)}
	}
	return t.Profile.Classify(x, t.Policy, now)
}

// checkMove returns the change of an endpoint that moved, or nil. An endpoint may move only where a redirect may lead, and not
// in circles; otherwise the move is refused and the outcome is terminal. A permanent redirect by the target of a temporary one
// is not stored: that target is not the endpoint (EDS-RED-3). A credential stays with its origin, so an endpoint with a
// credential does not leave its origin unless its owner allows it (EDS-RED-6).
func (m *Maker) checkMove(t *Target, job *Job, x *godwit.Exchange, v *godwit.Verdict) *store.EndpointChange {
	if v.MoveTo == "" {
		return nil
	}
	job.moves++
	err := m.cfg.Sender.CheckRedirect(t.Endpoint.URL, v.MoveTo)
	if err != nil || job.moves > t.Policy.MaxHops || len(x.Hops) > 0 || t.hasCredential() && !sameOrigin(t.Endpoint.URL, v.MoveTo) {
		v.MoveTo, v.Outcome, v.Reason = "", godwit.Terminal, godwit.ReasonMoveRefused
		return nil
	}
	return &store.EndpointChange{EndpointID: t.Endpoint.ID, MoveFrom: t.Endpoint.URL, MoveTo: v.MoveTo}
}

// traceOf keeps the details that an operator may want to see. An ordinary success has few.
func traceOf(t *Target, job *Job, x *godwit.Exchange, v *godwit.Verdict) godwit.Trace {
	tr := godwit.Trace{Proto: x.Proto, RemoteAddr: x.RemoteAddr, Hops: x.Hops, Problem: v.Problem}
	wire := godwit.Wire{Timing: godwit.NewWireTiming(x.Timing), Cut: x.BodyCapped || len(x.Body) > godwit.MaxBodyExcerpt}
	if x.Sent != nil {
		wire.Request, wire.Response = fields(x.Sent, t.headers), fields(x.Header, t.headers)
	}
	if !wire.Empty() {
		tr.Wire = &wire
	}
	if job.signer != nil {
		tr.SignedWith = job.signer.KeyIDs()
	}
	if len(x.Body) > 0 {
		tr.Body = profile.Excerpt(string(x.Body[:min(len(x.Body), godwit.MaxBodyExcerpt)]), godwit.MaxBodyExcerpt)
		tr.ContentType = profile.Excerpt(x.Header.Get("Content-Type"), 256)
	}
	if x.Header != nil && v.Outcome != godwit.Accepted {
		tr.RetryAfter = profile.Excerpt(x.Header.Get("Retry-After"), 64)
		tr.Link = profile.Excerpt(x.Header.Get("Link"), 512)
	}
	if x.Failure != nil {
		tr.Detail = profile.Excerpt(x.Failure.Detail, 512)
	}
	return tr
}

func lastDetail(x *godwit.Exchange, v *godwit.Verdict) string {
	switch {
	case x.Failure != nil:
		return string(x.Failure.Kind) + ": " + profile.Excerpt(x.Failure.Detail, 200)
	case v.Problem != nil && v.Problem.Title != "":
		return http.StatusText(x.Status) + ": " + profile.Excerpt(v.Problem.Title, 200)
	}
	return http.StatusText(x.Status)
}

// budgetStart returns when the time of a run began: with its first attempt, or when the endpoint was last resumed, since the
// time of a pause does not count. It has no monotonic reading: jumps of the clock are counted apart, and after a restart only
// the stored wall time is known.
func budgetStart(t *Target, run *godwit.Run) time.Time {
	first := run.FirstAt.Round(0)
	if t.Endpoint.StatusAt.After(first) {
		return t.Endpoint.StatusAt
	}
	return first
}

// OutOfTime reports whether a delivery's run ended while it waited, behind an open circuit for instance. It is not sent again:
// the receiver may have forgotten its key by now (EDS T-10). Time that the clock skipped when it was set forward does not count.
func (m *Maker) OutOfTime(t *Target, d *godwit.Delivery, now time.Time) bool {
	if d.Run.FirstAt.IsZero() {
		return false
	}
	start := budgetStart(t, &d.Run)
	end := start.Add(m.cfg.TimeScale.Real(t.Policy.MaxElapsed))
	return now.After(end) && now.After(end.Add(m.jumps.Ahead(start, now)))
}

// Expired makes the record of a delivery that is out of time: exhausted.
func Expired(job *Job, now time.Time) *commit.Record {
	r := Returned(job)
	d := &r.Result.Delivery
	d.Status, d.Reason, d.UpdatedAt, d.DueAt = godwit.DeliveryExhausted, godwit.ReasonTimeExhausted, now, time.Time{}
	r.Result.Event, r.Result.LastDetail = job.Work.Event, "the time for retries ended while it waited"
	return r
}

// Cancelled makes the record of a delivery whose endpoint is deleted.
func Cancelled(job *Job, now time.Time) *commit.Record {
	r := Returned(job)
	r.Result.Delivery.Cancel(godwit.ReasonEndpointDeleted, now)
	return r
}

// Returned makes the record that returns a claimed delivery to the store, with its due time unchanged.
func Returned(job *Job) *commit.Record {
	d := job.Work.Delivery
	if d.DueAt.IsZero() {
		d.DueAt = d.UpdatedAt
	}
	return &commit.Record{Result: store.Result{Delivery: d, Epoch: job.Epoch}, Event: job.Work.Event}
}
