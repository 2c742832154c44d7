package ojs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// about lists the events of a type with this subject that a watcher received.
func (r *rig) about(watcher sub, kind, subject string) []object {
	r.t.Helper()
	var list []object
	for _, req := range r.requests(watcher) {
		if body := decoded(r.t, req); body["type"] == kind && body["subject"] == subject {
			list = append(list, body)
		}
	}
	return list
}

func TestAnnouncements(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		watcher := r.subscribe("/watch", []string{"webhook.*"})
		for path, replies := range map[string][]apptest.Reply{
			"/fine": reply(200), "/late": reply(500, 500, 200), "/down": {apptest.Status(503).Body("text/plain", "body of the answer")}, "/gone": reply(404),
		} {
			r.sink.Script(path, replies...)
		}
		fine, late := r.subscribe("/fine", []string{"a.fine"}), r.subscribe("/late", []string{"a.late"})
		down, gone := r.subscribe("/down", []string{"a.down"}), r.subscribe("/gone", []string{"a.gone"})
		sent := map[string]godwit.EventID{}
		for _, name := range []string{"fine", "late", "down", "gone"} {
			sent[name] = r.publish("a." + name)
		}
		r.settle()
		for _, wait := range schedule {
			r.pass(wait)
		}
		counts := func(s sub, name string) (delivered, failed, dead []object) {
			id := r.Delivery(sent[name], s.Endpoint).ID.String()
			return r.about(watcher, "webhook.delivered", id), r.about(watcher, "webhook.failed", id), r.about(watcher, "webhook.dead", id)
		}
		t.Run("delivered", func(t *testing.T) {
			trace.Covers(t, "OJS-OBS-1")
			delivered, failed, dead := counts(fine, "fine")
			if len(delivered) != 1 || len(failed) != 0 || len(dead) != 0 {
				t.Fatalf("%d, %d, %d", len(delivered), len(failed), len(dead))
			}
			data := delivered[0]["data"].(object)
			if data["subscription_id"] != fine.id || data["delivery_id"] != delivered[0]["subject"] || data["event_id"] != sent["fine"].String() ||
				data["event_type"] != "a.fine" || data["attempt"] != 1.0 || data["status_code"] != 200.0 {
				t.Errorf("data %v", data)
			}
		})
		t.Run("failed", func(t *testing.T) {
			trace.Covers(t, "OJS-OBS-2")
			delivered, failed, dead := counts(late, "late")
			if len(delivered) != 1 || len(failed) != 2 || len(dead) != 0 {
				t.Fatalf("%d, %d, %d", len(delivered), len(failed), len(dead))
			}
			for i, e := range failed {
				data := e["data"].(object)
				next, err := time.Parse(time.RFC3339, fmt.Sprint(data["next_attempt_at"]))
				at, _ := time.Parse(time.RFC3339, e["time"].(string))
				if err != nil || data["attempt"] != float64(i+1) || data["status_code"] != 500.0 || data["error"] == nil || next.Sub(at).Round(time.Second) != schedule[i] {
					t.Errorf("data %v", data)
				}
			}
		})
		t.Run("dead", func(t *testing.T) {
			trace.Covers(t, "OJS-OBS-3")
			delivered, failed, dead := counts(down, "down")
			if len(delivered) != 0 || len(failed) != 7 || len(dead) != 1 {
				t.Errorf("exhausted: %d, %d, %d", len(delivered), len(failed), len(dead))
			}
			delivered, failed, dead = counts(gone, "gone")
			if len(delivered) != 0 || len(failed) != 0 || len(dead) != 1 || dead[0]["data"].(object)["reason"] == nil || dead[0]["data"].(object)["status_code"] != 404.0 {
				t.Errorf("rejected: %d, %d, %v", len(delivered), len(failed), dead)
			}
		})
		t.Run("created", func(t *testing.T) {
			trace.Covers(t, "OJS-OBS-4")
			for _, s := range []sub{fine, late, down, gone} {
				if list := r.about(watcher, "webhook.subscription.created", s.id); len(list) != 1 || occurs(list, s.secret) || list[0]["data"].(object)["subscription_id"] != s.id {
					t.Errorf("%v", list)
				}
			}
			// The announcement is stored like other events, even without a subscriber.
			if page := r.send(t, 200, apptest.Call{Path: eventsPath + "?types=webhook.subscription.created"}); !occurs(page, watcher.id) || len(page["events"].([]any)) != 5 {
				t.Errorf("%v", page)
			}
		})
		t.Run("deleted", func(t *testing.T) {
			trace.Covers(t, "OJS-OBS-5")
			r.send(t, 204, apptest.Call{Method: "DELETE", Path: gone.at("")})
			r.send(t, 404, apptest.Call{Method: "DELETE", Path: gone.at("")})
			if list := r.about(watcher, "webhook.subscription.deleted", gone.id); len(list) != 1 {
				t.Errorf("%v", list)
			}
		})
		t.Run("in the envelope", func(t *testing.T) {
			trace.Covers(t, "OJS-OBS-6", "OJS-OBS-7")
			known := []string{"delivery_id", "subscription_id", "event_id", "event_type", "attempt", "status_code", "error", "reason", "next_attempt_at"}
			kinds := map[any]bool{}
			for _, req := range r.requests(watcher) {
				body := decoded(t, req)
				checkEnvelope(t, body)
				kinds[body["type"]] = true
				if source := body["source"].(string); !regexp.MustCompile(`^ojs://[^/]+/webhooks$`).MatchString(source) {
					t.Errorf("source %q", source)
				}
				data := body["data"].(object)
				for name := range data {
					if !slices.Contains(known, name) {
						t.Errorf("member %s of %s", name, req.Body)
					}
				}
				if body["subject"] != data["delivery_id"] && body["subject"] != data["subscription_id"] {
					t.Errorf("subject of %s", req.Body)
				}
				if text := string(req.Body); strings.Contains(text, "whsec_") || strings.Contains(text, "body of the answer") {
					t.Errorf("it tells too much: %s", text)
				}
			}
			if len(kinds) != 5 {
				t.Errorf("kinds %v", kinds)
			}
		})
	})
}

// TestNoFeedback: announcements are not announced themselves.
func TestNoFeedback(t *testing.T) {
	trace.Covers(t, "OJS-OBS-8")
	r := newRig(t, apptest.Options{})
	all := r.subscribe("/all", []string{"*"})
	r.sink.Script("/dead", apptest.Status(404))
	bad := r.subscribe("/dead", []string{"webhook.*"}) // failed deliveries of announcements are not announced either
	r.publish("job.done")
	for range 60 {
		r.pass(time.Minute)
	}
	got := r.types(all)
	slices.Sort(got)
	want := []string{"job.done", "webhook.delivered", "webhook.subscription.created"} // the other's creation
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if list := r.list("subscription_id=" + bad.id + "&status=dead"); len(list) != 1 {
		t.Errorf("%+v", list)
	}
	// Metrics count all of them.
	if n := scrape(t, r, "ojs_webhook_delivery_count")[`ojs_webhook_delivery_count{event_type="webhook.delivered",status="success"}`]; n != 1 {
		t.Errorf("%v counted", n)
	}
}

// TestAnnouncementsByNameAlone: an operator can exclude announcements from subscriptions to all types (OT-8).
func TestAnnouncementsByNameAlone(t *testing.T) {
	trace.Covers(t, "OJS-OBS-8")
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.MetaEvents = config.MetaExplicit }})
	all, named := r.subscribe("/all", []string{"*"}), r.subscribe("/named", []string{"webhook.delivered"})
	r.publish("job.done")
	if got := r.types(all); !slices.Equal(got, []string{"job.done"}) {
		t.Errorf("all: %v", got)
	}
	if got := r.types(named); !slices.Equal(got, []string{"webhook.delivered"}) {
		t.Errorf("named: %v", got)
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t, apptest.Options{})
	families := []string{"ojs_webhook_delivery_count", "ojs_webhook_delivery_duration_ms", "ojs_webhook_delivery_retry_count", "ojs_webhook_dead_delivery_count", "ojs_webhook_subscription_count"}
	active := func() float64 {
		return scrape(t, r, "ojs_webhook_subscription_count")["ojs_webhook_subscription_count"]
	}
	t.Run("subscriptions", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-13")
		before := active()
		s := r.subscribe("/hook", []string{"never"})
		steps := []float64{active()}
		r.patch(s, object{"active": false})
		steps = append(steps, active())
		r.patch(s, object{"active": true})
		steps = append(steps, active())
		r.patch(s, object{"active": false})
		r.send(t, 204, apptest.Call{Method: "DELETE", Path: s.at("")})
		steps = append(steps, active())
		s = r.subscribe("/hook", []string{"never"})
		r.send(t, 204, apptest.Call{Method: "DELETE", Path: s.at("")})
		steps = append(steps, active())
		if !slices.Equal(steps, []float64{before + 1, before, before + 1, before, before}) {
			t.Errorf("from %v: %v", before, steps)
		}
	})
	r.sink.Script("/late", reply(500, 500, 200)...)
	r.sink.Script("/gone", apptest.Status(404))
	late, gone := r.subscribe("/late", []string{"m.late"}), r.subscribe("/gone", []string{"m.gone"})
	r.subscribe("/fine", []string{"m.fine"})
	for _, kind := range []string{"m.late", "m.gone", "m.fine"} {
		r.publish(kind)
	}
	r.settle()
	r.pass(schedule[0])
	r.pass(schedule[1])
	got := scrape(t, r, "ojs_webhook_")
	want := func(t *testing.T, n float64, format string, args ...any) {
		t.Helper()
		if name := fmt.Sprintf(format, args...); got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
	t.Run("deliveries", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-9")
		want(t, 1, `ojs_webhook_delivery_count{event_type="m.late",status="success"}`)
		want(t, 2, `ojs_webhook_delivery_count{event_type="m.late",status="failed"}`)
		want(t, 0, `ojs_webhook_delivery_count{event_type="m.late",status="dead"}`)
		want(t, 1, `ojs_webhook_delivery_count{event_type="m.gone",status="dead"}`)
		want(t, 0, `ojs_webhook_delivery_count{event_type="m.gone",status="failed"}`)
		want(t, 1, `ojs_webhook_delivery_count{event_type="m.fine",status="success"}`)
	})
	t.Run("retries", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-11")
		want(t, 1, `ojs_webhook_delivery_retry_count_count{event_type="m.late"}`)
		want(t, 2, `ojs_webhook_delivery_retry_count_sum{event_type="m.late"}`)
		want(t, 1, `ojs_webhook_delivery_retry_count_count{event_type="m.fine"}`)
		want(t, 0, `ojs_webhook_delivery_retry_count_sum{event_type="m.fine"}`)
		want(t, 0, `ojs_webhook_delivery_retry_count_count{event_type="m.gone"}`)
	})
	t.Run("dead ones", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-12")
		want(t, 1, `ojs_webhook_dead_delivery_count{event_type="m.gone",subscription_id="%s"}`, gone.id)
		want(t, 0, `ojs_webhook_dead_delivery_count{event_type="m.late",subscription_id="%s"}`, late.id)
	})
	t.Run("attempts", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-10")
		want(t, 3, `ojs_webhook_delivery_duration_ms_count{event_type="m.late",subscription_id="%s"}`, late.id)
		want(t, 1, `ojs_webhook_delivery_duration_ms_count{event_type="m.gone",subscription_id="%s"}`, gone.id)
		gate := make(chan struct{})
		r.sink.Script("/slow", apptest.Status(200).Until(gate))
		s := r.subscribe("/slow", []string{"m.slow"})
		ev := r.publish("m.slow")
		r.sink.WaitOn("/slow", 1)
		r.Advance(200 * time.Millisecond)
		close(gate)
		r.WaitDelivery(ev, s.Endpoint, godwit.DeliveryAccepted)
		got = scrape(t, r, "ojs_webhook_")
		want(t, 1, `ojs_webhook_delivery_duration_ms_count{event_type="m.slow",subscription_id="%s"}`, s.id)
		want(t, 200, `ojs_webhook_delivery_duration_ms_sum{event_type="m.slow",subscription_id="%s"}`, s.id)
	})
	t.Run("families", func(t *testing.T) {
		trace.Covers(t, "OJS-OBS-14")
		resp := r.Must(apptest.Call{Path: "/metrics"}, nil)
		if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") {
			t.Errorf("Content-Type %q", kind)
		}
		for i, kind := range []string{"counter", "histogram", "histogram", "counter", "gauge"} {
			dotted := []string{"ojs.webhook.delivery.count", "ojs.webhook.delivery.duration_ms", "ojs.webhook.delivery.retry_count", "ojs.webhook.dead_delivery.count", "ojs.webhook.subscription.count"}[i]
			text := string(resp.Body)
			if !strings.Contains(text, "# TYPE "+families[i]+" "+kind+"\n") || !regexp.MustCompile(`(?m)^# HELP `+families[i]+` .*`+regexp.QuoteMeta(dotted)).MatchString(text) {
				t.Errorf("%s is not there as a %s", families[i], kind)
			}
		}
	})
}

func TestHistoryIsKept(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-OBS-15")
		r := newRig(t, o)
		s := r.subscribe("/hook", []string{"job.*"})
		r.sink.Script("/hook", reply(500, 200)...)
		ev := r.publish("job.done")
		r.settle()
		r.pass(schedule[0])
		r.passDays(29)
		list := r.list("subscription_id=" + s.id)
		if len(list) != 1 || list[0].Status != "delivered" {
			t.Fatalf("%+v", list)
		}
		if d := r.delivery(ev, s); !slices.Equal(d.codes(), []int{500, 200}) {
			t.Errorf("%+v", d)
		}
	})
}
