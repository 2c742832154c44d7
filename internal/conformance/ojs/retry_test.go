package ojs

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestSchedule runs the document's whole table of over 41 hours, exact to the second.
func TestSchedule(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.sink.Script("/down", apptest.Status(500))
		s := r.subscribe("/down", []string{"job.*"})
		watch := r.subscribe("/watch", []string{"webhook.dead"})
		begun := r.Clock.Now()
		ev := r.publish("job.done")
		var due time.Duration
		times := []time.Duration{0}
		r.settle()
		for i, wait := range schedule {
			r.pass(wait - time.Second)
			if n := len(r.requests(s)); n != i+1 {
				t.Fatalf("%d requests a second before attempt %d is due", n, i+2)
			}
			if d := r.delivery(ev, s); d.Status != "failed" || !d.NextAttemptAt.Equal(r.Clock.Now().Add(time.Second).Truncate(time.Microsecond)) {
				t.Errorf("before attempt %d: %+v", i+2, d)
			}
			r.pass(time.Second)
			due += wait
			times = append(times, due)
		}
		r.passDays(5)
		requests := r.requests(s)
		d := r.delivery(ev, s)
		detail := func() (now deliveryView) {
			r.Must(apptest.Call{Path: deliveriesPath + "/" + d.ID}, &now)
			return now
		}

		t.Run("table", func(t *testing.T) {
			trace.Covers(t, "OJS-RTY-1")
			if len(d.Attempts) != len(times) || len(requests) != len(times) {
				t.Fatalf("%d attempts, %d requests", len(d.Attempts), len(requests))
			}
			for i, want := range times {
				if got := d.Attempts[i].StartedAt.Sub(begun.Truncate(time.Microsecond)); got != want {
					t.Errorf("attempt %d began after %v, want %v", i+1, got, want)
				}
				if seconds, err := strconv.ParseInt(requests[i].Header.Get("X-OJS-Timestamp"), 10, 64); err != nil || seconds != begun.Add(want).Unix() {
					t.Errorf("request %d says %d", i+1, seconds)
				}
			}
		})
		t.Run("eight attempts", func(t *testing.T) {
			trace.Covers(t, "OJS-RTY-3")
			if due != 148350*time.Second || len(requests) != 8 {
				t.Errorf("%d requests over %v", len(requests), due)
			}
		})
		t.Run("dead in the end", func(t *testing.T) {
			trace.Covers(t, "OJS-RTY-4")
			if d.Status != "dead" || d.Reason != "exhausted" || d.NextAttemptAt != nil {
				t.Errorf("%+v", d)
			}
			if got := r.types(watch); !slices.Equal(got, []string{"webhook.dead"}) {
				t.Errorf("announced %v", got)
			}
		})
		t.Run("fresh each time", func(t *testing.T) {
			trace.Covers(t, "OJS-RTY-8")
			for i, req := range requests {
				verify(t, req, s.secret, begun.Add(times[i]))
			}
		})
		t.Run("replayed by hand", func(t *testing.T) {
			trace.Covers(t, "OJS-RTY-6")
			r.retry(t, 202, d.ID)
			r.settle()
			again := detail()
			if again.Status != "failed" || again.AttemptCount != 9 || !again.NextAttemptAt.Equal(r.Clock.Now().Add(schedule[0]).Truncate(time.Microsecond)) {
				t.Errorf("after the first: %+v", again)
			}
			for _, wait := range schedule {
				r.pass(wait)
			}
			again = detail()
			if again.Status != "dead" || again.AttemptCount != 16 {
				t.Errorf("in the end: %+v", again)
			}
			begun := map[int]time.Time{}
			for _, a := range again.Attempts {
				begun[a.Number] = a.StartedAt
			}
			for i, wait := range schedule {
				if got := begun[10+i].Sub(begun[9+i]); got != wait {
					t.Errorf("attempt %d of the replay began after %v, want %v", i+2, got, wait)
				}
			}
			after := r.requests(s)
			if last := after[len(after)-1]; string(last.Body) != string(requests[0].Body) {
				t.Errorf("body %s", last.Body)
			}
		})
		t.Run("kept for inspection", func(t *testing.T) {
			trace.Covers(t, "OJS-RTY-5")
			r.passDays(29) // the event itself is older, and may be gone
			list := r.list("status=dead&subscription_id=" + s.id)
			if len(list) != 1 || list[0].ID != d.ID {
				t.Fatalf("listed: %+v", list)
			}
			if d := detail(); d.Status != "dead" || d.AttemptCount != 16 || len(d.Attempts) == 0 || d.Attempts[len(d.Attempts)-1].Number != 16 {
				t.Errorf("detail: %+v", d)
			}
		})
	})
}

func TestSuccessEndsTheSchedule(t *testing.T) {
	trace.Covers(t, "OJS-RTY-7")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/hook", reply(500, 500, 200, 500)...)
	s := r.subscribe("/hook", []string{"job.*"})
	ev := r.publish("job.done")
	r.settle()
	for _, wait := range schedule {
		r.pass(wait)
	}
	r.passDays(3)
	if d := r.delivery(ev, s); d.Status != "delivered" || !slices.Equal(d.codes(), []int{500, 500, 200}) || len(r.requests(s)) != 3 {
		t.Errorf("%+v", d)
	}
}

// TestFewestAttempts: an operator may lower the number of attempts, but not below six.
func TestFewestAttempts(t *testing.T) {
	trace.Covers(t, "OJS-RTY-2")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/hook", apptest.Status(500))
	s := r.subscribe("/hook", []string{"job.*"})
	limit := func(retries int) apptest.Call {
		return apptest.Call{Method: "PATCH", Path: "/v1/endpoints/" + s.id, Body: object{"policy": object{"max_retries": retries}}}
	}
	for _, retries := range []int{0, 1, 4} {
		if got := r.send(t, 422, limit(retries)); !occurs(got, "max_retries") {
			t.Errorf("%v", got)
		}
	}
	r.send(t, 200, limit(5))
	ev := r.publish("job.done")
	r.settle()
	for _, wait := range schedule {
		r.pass(wait)
	}
	r.passDays(3)
	if d := r.delivery(ev, s); d.Status != "dead" || d.AttemptCount != 6 || len(r.requests(s)) != 6 {
		t.Errorf("%+v", d)
	}
}

// TestScheduleOutlivesARestart: attempt and due time are where they were.
func TestScheduleOutlivesARestart(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-RTY-9")
		r := newRig(t, o)
		r.sink.Script("/hook", reply(500, 500, 200)...)
		s := r.subscribe("/hook", []string{"job.*"})
		ev := r.publish("job.done")
		r.settle()
		for i, wait := range schedule[:2] {
			r.pass(wait - time.Second)
			r = r.again()
			r.settle()
			if n := len(r.requests(s)); n != i+1 {
				t.Fatalf("%d requests a second early", n)
			}
			r.pass(time.Second)
			requests := r.requests(s)
			if len(requests) != i+2 || requests[i+1].Header.Get("X-OJS-Delivery-ID") != requests[0].Header.Get("X-OJS-Delivery-ID") || string(requests[i+1].Body) != string(requests[0].Body) {
				t.Fatalf("%d requests after the restart", len(requests))
			}
			verify(t, requests[i+1], s.secret, r.Clock.Now())
		}
		if d := r.delivery(ev, s); d.Status != "delivered" || d.AttemptCount != 3 {
			t.Errorf("%+v", d)
		}
	})
}
