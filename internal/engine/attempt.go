package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store"
)

// attempt makes one request for a claimed delivery and hands its result to the committer.
func (e *Engine) attempt(l *lane, it *item) {
	defer e.attempts.Done()
	t := l.current(e.clock.Now())
	x, token := e.exchange(e.base, t, it)
	if x.Status == http.StatusUnauthorized && token != "" {
		t.token.Invalidate(token)
	}
	if x.Failure != nil && x.Failure.Kind == godwit.FailureInterrupted {
		l.finished(it)
		e.commits.release(l, it, nil) // our own stop: it costs the delivery nothing
	} else {
		j := e.judge(l, t, it, &x)
		l.finished(it)
		e.commits.result(l, it, j)
	}
	e.slots.give()
}

// exchange makes the request. It returns the token that was presented, if the endpoint uses renewable ones.
func (e *Engine) exchange(ctx context.Context, t *target, it *item) (x godwit.Exchange, token string) {
	var err error
	now := e.clock.Now()
	it.attempt, it.signer = godwit.NewAttemptID(now), nil
	if t.broken != nil {
		return godwit.Exchange{URL: t.endpoint.URL, Started: now,
			Failure: &godwit.Failure{Kind: godwit.FailureCredential, Detail: t.broken.Error()}}, ""
	}
	if it.signer, err = t.signerFor(it.work.Event); err != nil {
		return godwit.Exchange{URL: t.endpoint.URL, Started: now,
			Failure: &godwit.Failure{Kind: godwit.FailureInvalidRequest, Detail: err.Error()}}, ""
	}
	d := &it.work.Delivery
	header, body := t.profile.Render(profile.Message{
		Event: it.work.Event, Delivery: d, Attempt: d.Attempts + 1, ID: it.attempt, Endpoint: &t.endpoint, Account: t.account,
		Budget: it.budget,
	})
	x = e.cfg.Sender.Send(ctx, &sender.Request{
		Method:  t.endpoint.Method,
		URL:     t.endpoint.URL,
		Header:  header,
		Body:    body,
		Timeout: t.policy.Timeout,
		Prepare: func(r *http.Request, otherOrigin bool) (err error) {
			token, err = t.prepare(r, it.signer, body, otherOrigin, e.clock.Now())
			return err
		},
		FreshConnection:   d.Reason == godwit.ReasonMisdirected,
		ClientCertificate: t.cert,
		Follow:            sender.Redirects{Statuses: t.follow, MaxHops: t.policy.MaxHops, AnyHost: t.policy.AnyHost},
	})
	return x, token
}

// A judgement is an exchange turned into what is to be recorded.
type judgement struct {
	result  store.Result
	change  *store.EndpointChange
	notices []godwit.Notice
	news    *news // events that tell of it; nil when there are none
	profile string
}

// judge classifies the exchange, decides what follows, and updates the endpoint's health.
func (e *Engine) judge(l *lane, t *target, it *item, x *godwit.Exchange) *judgement {
	now := e.clock.Now()
	j := &judgement{profile: t.endpoint.Profile}
	verdict := classify(t, x, now)
	e.checkMove(t, it, x, &verdict, j)

	d := it.work.Delivery
	d.Attempted(x.Started)
	run := d.Run
	run.FirstAt = budgetStart(t, &run)
	decision := godwit.Decide(&t.policy, &verdict, &run, godwit.Moment{
		Now: now, SunsetAt: l.sunset(&verdict), Scale: e.cfg.TimeScale, Draw: e.cfg.Draw,
	})
	if decision.Status == godwit.DeliveryPending && l.target.Load().endpoint.Status == godwit.EndpointDeleted {
		decision = godwit.Decision{Status: godwit.DeliveryCancelled, Reason: godwit.ReasonEndpointDeleted} // meanwhile
	}
	d.Follow(&decision, x.Status, now)

	attempt := &godwit.Attempt{
		ID: it.attempt, DeliveryID: d.ID, TenantID: d.TenantID, EventID: d.EventID,
		EndpointID: d.EndpointID, N: d.Attempts, Trigger: it.trigger, StartedAt: x.Started, Duration: x.Duration,
		URL: x.URL, Status: x.Status, Verdict: verdict, NextAt: decision.At, Trace: traceOf(it, x, &verdict),
	}
	if it.trigger == d.Run.Trigger {
		attempt.Trace.Actor = d.Run.Actor
	}
	j.result = store.Result{Delivery: d, Attempt: attempt, Epoch: it.epoch}
	if d.Status.Dead() {
		j.result.Event, j.result.LastDetail = it.work.Event, lastDetail(x, &verdict)
	}
	e.heal(l, t, j, &decision, now)
	e.tell(t, j, it.work.Event, now)
	if decision.Trigger == godwit.TriggerRefresh || decision.Trigger == godwit.TriggerMoved {
		it.trigger = decision.Trigger
		j.result.KeepClaim = true
	}
	return j
}

func classify(t *target, x *godwit.Exchange, now time.Time) godwit.Verdict {
	if t.profile == nil { // broken beyond its profile: nothing was sent
		return godwit.Verdict{Outcome: godwit.Transient, Class: godwit.ClassTransport, Reason: godwit.Reason(x.Failure.Kind)}
	}
	return t.profile.Classify(x, &t.policy, now)
}

// checkMove lets an endpoint move only where a redirect may lead, and not in circles; else the move is refused and the
// outcome terminal. A place that we were sent to for the time being may move, but that is not the endpoint: what it says must
// not be stored (EDS-RED-3). A credential stays with the origin it was given for, so an endpoint that has one does not leave
// it without its owner (EDS-RED-6).
func (e *Engine) checkMove(t *target, it *item, x *godwit.Exchange, v *godwit.Verdict, j *judgement) {
	if v.MoveTo == "" {
		return
	}
	it.moves++
	err := e.cfg.Sender.CheckRedirect(t.endpoint.URL, v.MoveTo)
	if err != nil || it.moves > t.policy.MaxHops || len(x.Hops) > 0 || t.secretive() && !sameOrigin(t.endpoint.URL, v.MoveTo) {
		v.MoveTo, v.Outcome, v.Reason = "", godwit.Terminal, godwit.ReasonMoveRefused
		return
	}
	j.change = &store.EndpointChange{EndpointID: t.endpoint.ID, MoveFrom: t.endpoint.URL, MoveTo: v.MoveTo}
}

// traceOf keeps what a person may want to see. An ordinary success leaves little.
func traceOf(it *item, x *godwit.Exchange, v *godwit.Verdict) godwit.Trace {
	tr := godwit.Trace{Proto: x.Proto, RemoteAddr: x.RemoteAddr, Hops: x.Hops, Problem: v.Problem}
	if it.signer != nil {
		tr.SignedWith = it.signer.KeyIDs()
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

// budgetStart is when the time for a run began: with its first attempt, or when the endpoint was last set free, since
// what a pause held is not to be given up for the time it was held.
func budgetStart(t *target, run *godwit.Run) time.Time {
	if t.endpoint.StatusAt.After(run.FirstAt) {
		return t.endpoint.StatusAt
	}
	return run.FirstAt
}

// outOfTime reports a delivery whose run ended while it waited for its turn, behind an open circuit for instance. It is
// not sent again: the receiver may have forgotten its key by now (EDS T-10).
func (e *Engine) outOfTime(t *target, d *godwit.Delivery, now time.Time) bool {
	return !d.Run.FirstAt.IsZero() && now.After(budgetStart(t, &d.Run).Add(e.cfg.TimeScale.Real(t.policy.MaxElapsed)))
}

// expire records such a delivery as exhausted.
func (e *Engine) expire(l *lane, it *item, now time.Time) {
	d := it.work.Delivery
	d.Status, d.Reason, d.UpdatedAt, d.DueAt = godwit.DeliveryExhausted, godwit.ReasonTimeExhausted, now, time.Time{}
	j := &judgement{result: store.Result{
		Delivery: d, Epoch: it.epoch, Event: it.work.Event, LastDetail: "the time for retries ended while it waited",
	}}
	e.tell(l.target.Load(), j, it.work.Event, now)
	e.commits.result(l, it, j)
}
