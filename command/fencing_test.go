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
	first := make(chan error, 1)
	go func(x *Executor, e *Envelope) {
		_, err := x.Submit(context.Background(), payer, e)
		first <- err
	}(r.x, r.envelope())
	<-asleep
	r.pass(61 * time.Second)
	r.run()
	if n, err := r.x.Recover(context.Background()); n != 1 || err != nil {
		t.Fatalf("recovered %d, %v", n, err)
	}
	r.eventually(func() bool { return c.n.Load() == 1 })
	r.pass(time.Hour)
	r.eventually(func() bool {
		n, err := r.store.SweepRecords(context.Background(), r.time(), 10)
		return n == 1 && err == nil
	})
	later, reserved, goOn := crash("handled")
	r.run(later)
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
