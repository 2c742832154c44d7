package command

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A late confirmation is answered as expired, whether the sweep ran before or not; in the end no record is left.
func TestLateConfirmationAfterTheSweep(t *testing.T) {
	r := newRig(t)
	r.register(Declaration{Confirmation: true}, &counter{})
	a := r.submit()
	ctx := context.Background()
	late := func() RefusalCode {
		t.Helper()
		r.x.recovery.sweep(ctx)
		_, err := r.x.Confirm(ctx, payer, a.CommandID, a.Token, "")
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Fatalf("confirmed late: %v", err)
		}
		return refusal.Code
	}
	r.pass(5*time.Minute + time.Second)
	if code := late(); code != TokenExpired {
		t.Errorf("a second late: %s", code)
	}
	r.pass(lateFor)
	if code := late(); code != TokenInvalid {
		t.Errorf("long after: %s", code)
	}
	if rec, err := r.store.Find(ctx, "t1", a.Key); rec != nil || err != nil {
		t.Errorf("still kept: %+v, %v", rec, err)
	}
}
