package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
)

// ErrStopped reports that the dispatcher is stopping.
var ErrStopped = errors.New("the dispatcher stops")

// A Trial is one request outside any delivery.
type Trial struct {
	Delivery godwit.DeliveryID // named in the request; nothing is stored under it
	Attempt  godwit.AttemptID
	Exchange godwit.Exchange
	Verdict  godwit.Verdict
}

// Try sends the event that make returns to the endpoint, once, and waits for the answer. The endpoint need not be active.
// Nothing is stored, counted or retried, and the endpoint's health and limits do not change.
func (l *Lane) Try(ctx context.Context, make func(now time.Time) *godwit.Event) (*Trial, error) {
	job, ok := trialJob(l, make)
	if !ok {
		return nil, ErrStopped
	}
	d := l.d
	defer d.attempts.Done()
	// The request ends with the dispatcher, as attempts do, and with the caller's context.
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.base, func() { cancel(sender.ErrInterrupted) })()

	t := l.current(d.cfg.Clock.Now())
	x := d.cfg.Maker.Send(sending, t, job)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case x.Failure != nil && x.Failure.Kind == godwit.FailureInterrupted:
		return nil, ErrStopped
	}
	return &Trial{
		Delivery: job.Work.Delivery.ID, Attempt: job.ID, Exchange: x, Verdict: attempt.Classify(t, &x, d.cfg.Clock.Now()),
	}, nil
}

// trialJob makes the job of a trial and registers it, so that a stop waits for it; ok is false when the dispatcher is
// stopping.
func trialJob(l *Lane, make func(now time.Time) *godwit.Event) (job *attempt.Job, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.d.Running() {
		return nil, false
	}
	l.d.attempts.Add(1)
	now := l.d.cfg.Clock.Now()
	made := attempt.NewJob(make(now), l.id, godwit.NewDeliveryID(now), godwit.TriggerTest)
	made.Budget = l.pace.budget(now)
	return &made, true
}
