package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// records reads and changes the records of commands, and appends evidence. All parts of an executor share it.
type records struct {
	clock
	vault
	commits *committer
	closing func() bool // reports whether the executor is shutting down
}

// commit advances a record to our next version. If the store's answer was lost, commit tries the step again and recognises
// a step that was stored by the MAC of its record, which is unique. It reports false if another record is stored: that of
// another executor, or an earlier one of the same owner whose answer was lost.
func (x *records) commit(next *Record, step *Step) (*Record, bool, error) {
	var pause time.Duration
	for try := 1; ; try++ {
		r, err := x.commits.advance(step)
		switch {
		case err == nil && r.Err != nil:
			return nil, false, r.Err
		case err == nil && !r.Refused:
			return r.Stored, true, nil
		case err == nil:
			mine := r.Stored != nil && r.Stored.Owner == next.Owner && r.Stored.CommandID == next.CommandID && r.Stored.Version > step.Expect
			if next.MAC != nil { // a reservation has no MAC before it is settled, but a unique owner
				mine = mine && bytes.Equal(r.Stored.MAC, next.MAC)
			}
			return r.Stored, mine, nil
		case errors.Is(err, errStopped) || try == commitTries || x.closing():
			return nil, false, fmt.Errorf("store command: %w", err)
		}
		pause = max(2*pause, 20*time.Millisecond)
		x.rest(context.Background(), pause)
	}
}

// observe appends evidence without a record.
func (x *records) observe(tenant string, entries ...evidence.Entry) error {
	r, err := x.commits.advance(&Step{Tenant: tenant, Settle: func(Applied) (Change, error) { return Change{Evidence: entries}, nil }})
	return errors.Join(err, r.Err)
}

// find reads the record under a key and refuses a record that was tampered with (IDS-SEC-2).
func (x *records) find(ctx context.Context, tenant, key string) (*Record, error) {
	rec, err := x.cfg.Store.Find(ctx, tenant, key)
	if err != nil {
		return nil, fmt.Errorf("find command: %w", err)
	}
	return rec, x.trust(rec)
}

// mine finds the caller's record of a command, and its declaration.
func (x *records) mine(ctx context.Context, caller Caller, commandID string) (*Record, *Registered, error) {
	rec, err := x.cfg.Store.FindCommand(ctx, caller.Tenant, commandID)
	if err != nil {
		return nil, nil, fmt.Errorf("find command: %w", err)
	}
	if rec == nil {
		return nil, nil, nil
	}
	if err := x.trust(rec); err != nil {
		return nil, nil, err
	}
	c := x.cfg.Registry.Lookup(rec.Tenant, rec.Intent.Entity, rec.Intent.Action)
	if c == nil {
		return nil, nil, &Refusal{Code: UnknownCommand, Detail: fmt.Sprintf("%s.%s is no longer registered", rec.Intent.Entity, rec.Intent.Action), CommandID: commandID}
	}
	return rec, c, nil
}

func (x *records) trust(rec *Record) error {
	if err := x.genuine(rec); err != nil {
		x.cfg.Log.Error("the record of a command was changed in the store: it is neither replayed nor executed again",
			"tenant", rec.Tenant, "command_id", rec.CommandID, "key", rec.Key)
		return &Refusal{Code: StoreIntegrity, Detail: "the record under this key is not as it was written; an operator has to look at it",
			CommandID: rec.CommandID, Key: rec.Key}
	}
	return nil
}

// ownName returns an owner name that only this process and this try have. It identifies a step whose answer was lost as
// our own.
func (x *records) ownName() string { return fmt.Sprintf("%s/%x", x.cfg.Owner, random(8)) }

// recall rebuilds the call of a stored record.
func (x *records) recall(rec *Record) (*Call, error) {
	var k kept
	if err := x.open(rec.Envelope, envelopeBound(rec.Tenant, rec.Key), &k); err != nil {
		return nil, errors.Join(err, x.trust(&Record{Tenant: rec.Tenant, Key: rec.Key, CommandID: rec.CommandID}))
	}
	return &Call{CommandID: rec.CommandID, Tenant: rec.Tenant, Actor: rec.Actor, Principal: rec.Principal, Intent: rec.Intent, Args: k.Args,
		Options: k.Options, Key: rec.Key, Try: rec.Try}, nil
}
