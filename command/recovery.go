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

// recovery continues commands whose executor has died, and removes records that are free.
type recovery struct {
	*records
	executions *executions
	lost       chan struct{} // wakes it
}

// look asks for a search for lost commands.
func (x *recovery) look() {
	select {
	case x.lost <- struct{}{}:
	default:
	}
}

// takeOverLost continues commands whose executor has not renewed its lease in time. It returns the number of commands it took
// over; they execute in the background.
//
// Commands that cannot be recovered, because they were tampered with or are no longer registered, remain the earliest.
// takeOverLost searches past them, so that they do not hide others.
func (x *recovery) takeOverLost(ctx context.Context) (int, error) {
	taken, tried := 0, map[RecordID]bool{}
	for limit := atOnce; ; limit *= 2 {
		lost, err := x.cfg.Store.Lost(ctx, x.cfg.Now(), limit)
		if err != nil {
			return taken, fmt.Errorf("list lost commands: %w", err)
		}
		for i := range lost {
			place := lost[i].id()
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

func (x *recovery) recoverAll(ctx context.Context) {
	if _, err := x.takeOverLost(ctx); err != nil && ctx.Err() == nil {
		x.cfg.Log.Warn("look for commands whose executor died", "error", err)
	}
}

func (x *recovery) sweep(ctx context.Context) {
	for n := atOnce; n == atOnce && ctx.Err() == nil; {
		var err error
		if n, err = x.cfg.Store.SweepRecords(ctx, x.cfg.Now().Add(-x.cfg.Scale(lateFor)), atOnce); err != nil {
			x.cfg.Log.Warn("sweep commands", "error", err)
			return
		}
	}
}

// goOn takes over a lost record, unless it cannot be trusted or belongs to an execution of this process: a lease that
// expired while the store was away is still renewed by that execution. Two executions never run at once (IDS-RPL-7).
func (x *recovery) goOn(rec *Record) bool {
	if x.executions.has(rec.id()) || x.trust(rec) != nil { // trust logs the record; an operator must examine it
		return false
	}
	ok, err := x.takeOver(rec)
	if err != nil {
		x.cfg.Log.Error("take over command", "command_id", rec.CommandID, "error", err)
	}
	return ok
}

// takeOver makes a lost record ours and continues it.
func (x *recovery) takeOver(rec *Record) (bool, error) {
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
			Command: c.Name(), Target: rec.Intent.Target, Actor: rec.Actor, Fingerprint: rec.Fingerprint, OutcomeStatus: string(InProgress)}}
	}
	stored, ours, err := x.commit(next, &Step{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version, Settle: func(Applied) (Change, error) {
		return Change{Record: next, Evidence: entries}, nil
	}})
	if err != nil || !ours {
		return false, err
	}
	x.cfg.fault("recovered")
	call, err := x.recall(stored)
	if err != nil {
		return false, err
	}
	resumed := HandlerFunc(func(ctx context.Context, call *Call) (*Outcome, error) { return call.ledger.(*execution).resume(ctx) })
	_, err = x.executions.start(c, resumed, Caller{Tenant: rec.Tenant, Actor: rec.Actor}, call, stored)
	return err == nil, err
}
