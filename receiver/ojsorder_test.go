package receiver_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// lifecycle are events of one job, as they happened; two have the same instant in two spellings.
var lifecycle = []string{
	`{"id":"1","type":"job.enqueued","subject":"job-1","time":"2026-02-15T22:29:59.999999Z"}`,
	`{"id":"2","type":"job.started","subject":"job-1","time":"2026-02-15T23:30:00+01:00"}`,
	`{"id":"3","type":"job.progress","subject":"job-1","time":"2026-02-15T22:30:00.000001Z"}`,
	`{"id":"4","type":"job.completed","subject":"job-1","time":"2026-02-15T22:30:01Z"}`,
}

func TestOrderIsThatOfTime(t *testing.T) {
	trace.Covers(t, "OJS-DLV-17", "OJS-DLV-18")
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			g := newRig(t, withScheme(receiver.OJS{Secrets: []string{secretA}}))
			var newest receiver.Newest
			var arrived []receiver.OJSEvent
			state := ""
			g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
				var e receiver.OJSEvent
				if err := d.JSON(&e); err != nil {
					return receiver.Reject{Reason: "no event"}, nil
				}
				arrived = append(arrived, e)
				if newest.Takes(e) {
					state = e.Type
				}
				return nil, nil
			}
			for _, i := range order {
				for _, m := range mechanisms() {
					if m.name == "ojs" {
						g.want(g.do(g.make(m, event{id: fmt.Sprint("del_", i), body: lifecycle[i]}, true)), 200)
					}
				}
			}
			if state != "job.completed" {
				t.Errorf("the job is %s", state)
			}
			receiver.SortByTime(arrived)
			if !slices.IsSortedFunc(arrived, func(a, b receiver.OJSEvent) int { return a.Time.Compare(b.Time) }) || arrived[0].ID != "1" || arrived[3].ID != "4" {
				t.Errorf("in order: %+v", arrived)
			}
		})
	}
}

func TestNewest(t *testing.T) {
	var n receiver.Newest
	at := func(subject string, seconds int64) receiver.OJSEvent {
		return receiver.OJSEvent{Subject: subject, Time: time.Unix(seconds, 0)}
	}
	for _, c := range []struct {
		e    receiver.OJSEvent
		want bool
	}{{at("a", 5), true}, {at("a", 5), false}, {at("a", 4), false}, {at("b", 1), true}, {at("a", 6), true}} {
		if n.Takes(c.e) != c.want {
			t.Errorf("%+v", c.e)
		}
	}
	n.Forget("a")
	if !n.Takes(at("a", 1)) {
		t.Error("it was not forgotten")
	}
}
