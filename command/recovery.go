package command

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

const (
	lookEvery  = 5 * time.Second
	sweepEvery = time.Minute
	atOnce     = 64
	maxLost    = 16 * atOnce // records to search for recoverable ones
	// lateFor is how long a free record is kept, so that a late confirmation gets an answer that says so (IDS-CNF-4).
	lateFor = 15 * time.Minute
)

// Run writes, recovers and sweeps until the context ends. Then it asks handlers to end, waits for those that do, and
// stops.
func (x *Executor) Run(ctx context.Context) {
	written := make(chan struct{})
	go func() { defer close(written); x.commits.run() }()
	look, sweep := x.newTicker(lookEvery), x.newTicker(sweepEvery)
	defer look.stop()
	defer sweep.stop()
	x.look()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-look.C:
			x.recoverAll(ctx)
		case <-x.lost:
			x.recoverAll(ctx)
		case <-sweep.C:
			x.sweep(ctx)
		}
	}
	x.mu.Lock()
	x.stopping = true
	for _, e := range x.running {
		e.cancel(errShutdown)
	}
	x.mu.Unlock()
	x.wg.Wait()
	x.commits.stop()
	<-written
}

// look asks for a search for lost commands.
func (x *Executor) look() {
	select {
	case x.lost <- struct{}{}:
	default:
	}
}

func (x *Executor) recoverAll(ctx context.Context) {
	if _, err := x.Recover(ctx); err != nil && ctx.Err() == nil {
		x.cfg.Log.Warn("look for commands whose executor died", "error", err)
	}
}

func (x *Executor) sweep(ctx context.Context) {
	for n := atOnce; n == atOnce && ctx.Err() == nil; {
		var err error
		if n, err = x.cfg.Store.SweepRecords(ctx, x.cfg.Now().Add(-x.cfg.Scale(lateFor)), atOnce); err != nil {
			x.cfg.Log.Warn("sweep commands", "error", err)
			return
		}
	}
}

// Recover continues commands whose executor has not renewed its lease in time. It returns the number of commands it took
// over; they execute in the background. Run calls it every few seconds.
//
// Commands that cannot be recovered, because they were tampered with or are no longer registered, remain the earliest.
// Recover searches past them, so that they do not hide others.
func (x *Executor) Recover(ctx context.Context) (int, error) {
	taken, tried := 0, map[string]bool{}
	for limit := atOnce; ; limit *= 2 {
		lost, err := x.cfg.Store.Lost(ctx, x.cfg.Now(), limit)
		if err != nil {
			return taken, fmt.Errorf("list lost commands: %w", err)
		}
		for i := range lost {
			place := lost[i].Tenant + "\x00" + lost[i].Key
			if !tried[place] && x.goOn(&lost[i]) {
				taken++
			}
			tried[place] = true
		}
		switch {
		case taken >= atOnce:
			x.look() // there may be more
			return taken, nil
		case len(lost) < limit || limit >= maxLost:
			return taken, nil
		}
	}
}

// goOn takes over a lost record, unless it cannot be trusted or belongs to an execution of this process: a lease that
// expired while the store was away is still renewed by that execution. Two executions never run at once (IDS-RPL-7).
func (x *Executor) goOn(rec *Record) bool {
	x.mu.Lock()
	_, ours := x.running[rec.Tenant+"\x00"+rec.Key]
	x.mu.Unlock()
	if ours || x.trust(rec) != nil { // trust logs the record; an operator must examine it
		return false
	}
	ok, err := x.takeOver(rec)
	if err != nil {
		x.cfg.Log.Error("take over command", "command_id", rec.CommandID, "error", err)
	}
	return ok
}

// takeOver makes a lost record ours and continues it.
func (x *Executor) takeOver(rec *Record) (bool, error) {
	c := x.cfg.Registry.Lookup(rec.Tenant, rec.Intent.Entity, rec.Intent.Action)
	if c == nil {
		return false, fmt.Errorf("%s.%s is no longer registered: register it, so that what is under way can end", rec.Intent.Entity, rec.Intent.Action)
	}
	now := x.now()
	next := rec.next()
	next.Owner, next.LeaseUntil, next.Try = x.ownName(), now.Add(x.cfg.Lease), rec.Try+1
	x.authenticate(next)
	var entries []evidence.Entry
	if rec.Substatus != NeedsReconciliation { // a command that needs reconciliation is asked about repeatedly
		entries = []evidence.Entry{{Type: evidence.Recovered, At: now, CommandID: rec.CommandID, SubmittedID: rec.CommandID, Key: rec.Key,
			Command: c.Name(), Actor: rec.Actor, Fingerprint: rec.Fingerprint, OutcomeStatus: string(InProgress)}}
	}
	stored, ours, err := x.commit(next, &Step{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version, Settle: func(Applied) (Change, error) {
		return Change{Record: next, Evidence: entries}, nil
	}})
	if err != nil || !ours {
		return false, err
	}
	x.fault("recovered")
	call, err := x.recall(stored)
	if err != nil {
		return false, err
	}
	resumed := HandlerFunc(func(ctx context.Context, call *Call) (*Outcome, error) { return call.ledger.(*execution).resume(ctx) })
	_, err = x.start(c, resumed, Caller{Tenant: rec.Tenant, Actor: rec.Actor}, call, stored)
	return err == nil, err
}
