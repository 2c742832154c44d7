package engine_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// punctual removes the jitter, so that every time is exact.
func punctual(c *engine.Config) { c.Draw = func() float64 { return 0 } }

// dialect returns the fields of an endpoint with a profile and patterns.
func dialect(profile string, patterns ...string) apptest.Fields {
	return apptest.Fields{"profile": profile, "patterns": patterns}
}

// The delays of each dialect's schedule: before the second attempt, the third, and so on.
var (
	ojsWaits       = seconds(30, 120, 600, 3600, 14400, 43200, 86400)
	cybercubeWaits = seconds(60, 300, 1800, 7200, 28800, 86400)
)

func seconds(list ...int) []time.Duration {
	waits := make([]time.Duration, len(list))
	for i, n := range list {
		waits[i] = time.Duration(n) * time.Second
	}
	return waits
}

// stored truncates a time to the precision of a store.
func stored(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// Each attempt comes at the time in the dialect's table, counted from the previous attempt, with the next number. After the
// last one the delivery is dead and is not tried again.
func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		profile string
		waits   []time.Duration
		sum     time.Duration
		rows    []string
	}{
		{"ojs", ojsWaits, 41*time.Hour + 12*time.Minute + 30*time.Second, []string{"OJS-RTY-1", "OJS-RTY-3", "OJS-RTY-4"}},
		{"cybercube", cybercubeWaits, 34*time.Hour + 36*time.Minute, []string{"CCW-RTY-1", "CCW-RTY-2", "CCW-RTY-5"}},
	} {
		t.Run(c.profile, func(t *testing.T) {
			trace.Covers(t, c.rows...)
			hands := clock.NewManual(start)
			srv := boot(t, &tampered{}, hands, punctual)
			sink := apptest.NewSink(t)
			sink.Script("/", apptest.Status(500))
			ep := srv.Endpoint(sink.URL("/"), dialect(c.profile, "job.*"))
			ev := srv.Publish("job.done", `{}`)
			at := hands.Now()
			for i, wait := range c.waits {
				a := srv.WaitAttempts(ev, ep, i+1)[i]
				d := srv.Delivery(ev, ep)
				if a.N != i+1 || !a.StartedAt.Equal(stored(at)) || !a.NextAt.Equal(stored(at.Add(wait))) {
					t.Fatalf("attempt %d: %+v, want it at %s and the next %s later", i+1, a, at, wait)
				}
				if d.Status != godwit.DeliveryPending || d.Attempts != i+1 || !d.DueAt.Equal(a.NextAt) {
					t.Fatalf("after attempt %d: %+v", i+1, d)
				}
				srv.Advance(wait - time.Second)
				srv.Advance(time.Second)
				at = at.Add(wait)
			}
			if got := at.Sub(start); got != c.sum {
				t.Errorf("the schedule spans %s, want %s", got, c.sum)
			}
			d := srv.WaitDelivery(ev, ep, godwit.DeliveryExhausted)
			attempts := srv.Attempts(ev, ep)
			last := attempts[len(attempts)-1]
			if len(attempts) != len(c.waits)+1 || !last.StartedAt.Equal(stored(at)) || !last.NextAt.IsZero() || d.Reason != godwit.ReasonAttemptsExhausted {
				t.Errorf("%d attempts, the last %+v; delivery %+v", len(attempts), last, d)
			}
			if c.profile == "ojs" {
				if n := countEvents(t, srv, "webhook.dead"); n != 1 {
					t.Errorf("%d events webhook.dead", n)
				}
			}
			srv.Advance(100 * time.Hour)
			srv.WaitAttempts(srv.Publish("job.done", `{}`), ep, 1) // all earlier attempts have been made by then
			if n := len(srv.Attempts(ev, ep)); n != len(c.waits)+1 {
				t.Errorf("%d attempts of a dead delivery", n)
			}
		})
	}
}

func countEvents(t *testing.T, srv *apptest.Server, eventType string) int {
	t.Helper()
	list, err := srv.App.Store().ListEvents(context.Background(), store.EventFilter{TenantID: srv.Tenant, Type: eventType}, store.Page{Limit: 200})
	must(t, err)
	return len(list)
}

// A success ends the schedule at any attempt.
func TestSuccessEndsTheSchedule(t *testing.T) {
	for _, c := range []struct {
		profile string
		row     string
		answers []int
	}{
		{"ojs", "OJS-RTY-7", []int{500, 500, 200}},
		{"cybercube", "CCW-RTY-8", []int{500, 200}},
	} {
		t.Run(c.profile, func(t *testing.T) {
			trace.Covers(t, c.row)
			srv := boot(t, &tampered{}, clock.NewManual(start), punctual)
			sink := apptest.NewSink(t)
			var replies []apptest.Reply
			for _, status := range append(c.answers, 500) { // a further attempt would fail and be noticed
				replies = append(replies, apptest.Status(status))
			}
			sink.Script("/", replies...)
			ep := srv.Endpoint(sink.URL("/"), dialect(c.profile, "job.*"))
			ev := srv.Publish("job.done", `{}`)
			for i := range c.answers {
				srv.WaitAttempts(ev, ep, i+1)
				srv.Advance(time.Hour)
			}
			srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
			srv.Advance(100 * time.Hour)
			srv.WaitAttempts(srv.Publish("job.done", `{}`), ep, 1)
			if n := len(srv.Attempts(ev, ep)); n != len(c.answers) {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

// A schedule continues after a restart, with the next number and the same id: at its time if that is in the future, at once if
// it has passed.
func TestScheduleGoesOnAfterARestart(t *testing.T) {
	for _, c := range []struct {
		profile string
		row     string
		waits   []time.Duration
	}{
		{"ojs", "OJS-RTY-9", ojsWaits},
		{"cybercube", "CCW-RTY-6", cybercubeWaits},
	} {
		t.Run(c.profile, func(t *testing.T) {
			trace.Covers(t, c.row)
			hands := clock.NewManual(start)
			srv := boot(t, &tampered{}, hands, punctual)
			sink := apptest.NewSink(t)
			sink.Script("/", apptest.Status(500))
			ep := srv.Endpoint(sink.URL("/"), dialect(c.profile, "job.*"))
			ev := srv.Publish("job.done", `{}`)
			srv.WaitAttempts(ev, ep, 1)
			first := srv.Delivery(ev, ep)
			must(t, srv.Stop())

			again := reboot(t, srv, hands)
			again.Advance(c.waits[0])
			again.WaitAttempts(ev, ep, 2)
			must(t, again.Stop())
			hands.Advance(c.waits[1] + time.Hour) // while no server runs

			third := reboot(t, srv, hands)
			attempts := third.WaitAttempts(ev, ep, 3)
			d := third.Delivery(ev, ep)
			if !attempts[1].StartedAt.Equal(stored(start.Add(c.waits[0]))) || !attempts[2].StartedAt.Equal(stored(hands.Now())) ||
				attempts[2].N != 3 || d.ID != first.ID || !d.DueAt.Equal(stored(hands.Now().Add(c.waits[2]))) {
				t.Errorf("attempts %+v, delivery %+v", attempts, d)
			}
			if c.profile == "cybercube" {
				for i, r := range sink.Requests("/") {
					if got := r.Header.Get("X-Webhook-Delivery-Attempt"); got != strconv.Itoa(i+1) {
						t.Errorf("request %d says attempt %q", i+1, got)
					}
				}
			}
		})
	}
}

// reboot starts a new server on the stopped server's data.
func reboot(t *testing.T, srv *apptest.Server, hands *clock.Manual) *apptest.Server {
	t.Helper()
	return apptest.Start(t, apptest.Options{Data: srv.Config.Data, Clock: hands, Tune: func(c *engine.Config) {
		c.LeaseTTL = 10000 * time.Hour
		punctual(c)
	}})
}

// A dead delivery that an operator retries gets all its attempts again, at the times of the table; the id stays and the count
// continues.
func TestManualRetryStartsANewRun(t *testing.T) {
	trace.Covers(t, "OJS-RTY-6")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404), apptest.Status(500))
	ep := srv.Endpoint(sink.URL("/"), dialect("ojs", "job.*"))
	ev := srv.Publish("job.done", `{}`)
	dead := srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
	ctx := context.Background()
	if _, err := srv.App.Engine().Retry(ctx, srv.Tenant, dead.ID, "somebody"); err != nil {
		t.Fatal(err)
	}
	for i, wait := range ojsWaits {
		a := srv.WaitAttempts(ev, ep, i+2)[i+1]
		d := srv.Delivery(ev, ep)
		if d.ID != dead.ID || d.Run.Attempts != i+1 || !a.NextAt.Equal(stored(hands.Now().Add(wait))) {
			t.Fatalf("attempt %d of the new run: %+v; %+v", i+1, a, d)
		}
		srv.Advance(wait)
	}
	d := srv.WaitDelivery(ev, ep, godwit.DeliveryExhausted)
	if d.Attempts != 1+8 {
		t.Errorf("delivery %+v", d)
	}
	if a := srv.Attempts(ev, ep)[1]; a.Trigger != godwit.TriggerManual || a.Trace.Actor != "somebody" {
		t.Errorf("second attempt %+v", a)
	}
}

// A replayed dead letter that fails again goes through the whole schedule once more and leaves another dead letter.
func TestReplayedDeadLetterDiesAgain(t *testing.T) {
	trace.Covers(t, "CCW-DLQ-11")
	srv := boot(t, &tampered{}, clock.NewManual(start), punctual)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404), apptest.Status(500))
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*"))
	ev := srv.Publish("project.created", `{}`)
	dead := srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
	ctx := context.Background()
	if made, err := srv.App.Engine().Replay(ctx, srv.Tenant, []godwit.DeliveryID{dead.ID}, "somebody"); err != nil || len(made) != 1 {
		t.Fatalf("replay: %+v, %v", made, err)
	}
	for i, wait := range cybercubeWaits {
		srv.WaitAttempts(ev, ep, i+2)
		srv.Advance(wait)
	}
	srv.WaitDelivery(ev, ep, godwit.DeliveryExhausted)
	if n := len(srv.Attempts(ev, ep)); n != 1+7 {
		t.Errorf("%d attempts", n)
	}
	letters, err := srv.App.Store().ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: srv.Tenant, EndpointID: ep.ID, Replayed: true}, store.Page{Limit: 10})
	must(t, err)
	if len(letters) != 2 || !letters[0].ReplayedAt.IsZero() || letters[1].ReplayedAt.IsZero() {
		t.Errorf("dead letters %+v", letters)
	}
}

// A failing event delays neither a later event nor another endpoint, and only it is retried.
func TestRetriesAreIndependent(t *testing.T) {
	for profile, rows := range map[string][]string{"ojs": {"OJS-DLV-16", "OJS-DLV-21"}, "cybercube": {"CCW-RTY-9"}} {
		t.Run(profile, func(t *testing.T) {
			trace.Covers(t, rows...)
			hands := clock.NewManual(start)
			srv := boot(t, &tampered{}, hands, punctual)
			sink := apptest.NewSink(t)
			sink.Script("/fails", status(500, 200)...)
			fails := srv.Endpoint(sink.URL("/fails"), dialect(profile, "job.*"))
			works := srv.Endpoint(sink.URL("/works"), dialect(profile, "job.*"))
			first := srv.Publish("job.done", `{}`)
			srv.WaitAttempts(first, fails, 1)
			srv.WaitDelivery(first, works, godwit.DeliveryAccepted)
			second := srv.Publish("job.done", `{}`)
			srv.WaitDelivery(second, fails, godwit.DeliveryAccepted) // while the first waits
			srv.WaitDelivery(second, works, godwit.DeliveryAccepted)
			if d := srv.Delivery(first, fails); d.Status != godwit.DeliveryPending || d.Attempts != 1 {
				t.Errorf("the first: %+v", d)
			}
			srv.Advance(time.Minute)
			srv.WaitDelivery(first, fails, godwit.DeliveryAccepted)
			if f, w := len(sink.Requests("/fails")), len(sink.Requests("/works")); f != 3 || w != 2 {
				t.Errorf("%d and %d requests", f, w)
			}
		})
	}
}
