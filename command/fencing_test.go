package command

import (
	"context"
	"testing"
	"time"
)

// A process sleeps while it executes a command. Another one ends the command, its window ends, its record is swept, and the
// same command is submitted anew. When the first process wakes up, it changes nothing of the new command.
func TestExecutorThatWakesAfterTheWindow(t *testing.T) {
	r := &rig{t: t, store: NewMemoryStore(), reg: NewRegistry(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	var c counter
	r.register(Declaration{Class: I2, Justification: "for a test", Window: Window(10 * time.Minute)}, &c)
	tune, asleep, wake := crash("handled")
	stop := r.run(tune)
	t.Cleanup(wake) // before its executor is stopped
	first, asked := make(chan error, 1), r.envelope()
	go func(x *Executor) {
		_, err := x.Submit(context.Background(), payer, asked)
		first <- err
	}(r.x)
	<-asleep
	r.pass(61 * time.Second)
	r.run()
	if _, err := r.x.Recover(context.Background()); err != nil { // unless the executor has recovered it already, by itself
		t.Fatal(err)
	}
	// The window counts from the moment that is stored as the command's end, so the end has to be stored before the hour passes.
	if a := r.ends(asked.CommandID); a.Status != Executed || c.n.Load() != 1 {
		t.Fatalf("the other process has stored %+v, with %d effects", a, c.n.Load())
	}
	r.pass(time.Hour)
	if n, err := r.store.SweepRecords(context.Background(), r.time(), 10); n != 1 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	later, reserved, goOn := crash("handled")
	r.run(later)
	t.Cleanup(goOn)
	second := make(chan *Answer, 1)
	go func(x *Executor, e *Envelope) {
		a, err := x.Submit(context.Background(), payer, e)
		if err != nil {
			t.Error(err)
		}
		second <- a
	}(r.x, r.envelope())
	<-reserved
	wake()
	if err := <-first; err == nil {
		t.Error("the first process has stored an outcome")
	}
	stop()
	goOn()
	if a := <-second; a == nil || a.Status != Executed || !a.Executed || c.n.Load() != 2 {
		t.Errorf("the new command is %+v, with %d effects", a, c.n.Load())
	}
}

// The store takes longer for the reservation than the lease lasts. Another executor may have the command by then, so this one
// makes no call.
func TestLeaseCountsFromTheReservation(t *testing.T) {
	u, p := &unreliable{}, &provider{}
	r := newRig(t, unreliably(u))
	r.register(ledgered, charging{p})
	u.become(func(steps []*Step) (bool, bool) {
		if steps[0].Key != "" && steps[0].Expect == 0 {
			r.pass(61 * time.Second)
		}
		return false, false
	})
	e := r.envelope()
	if a, err := r.x.Submit(context.Background(), payer, e); err == nil || p.count() != 0 {
		t.Fatalf("%+v, %d charges", a, p.count())
	}
	if _, err := r.x.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a := r.ends(e.CommandID); a.Status != Executed || p.count() != 1 {
		t.Errorf("%s with %d charges", a.Status, p.count())
	}
}
