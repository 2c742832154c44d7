package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// An announced is an announcement as its receiver gets it.
type announced struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Data    struct {
		DeliveryID string    `json:"delivery_id"`
		EventID    string    `json:"event_id"`
		EventType  string    `json:"event_type"`
		Attempt    int       `json:"attempt"`
		StatusCode int       `json:"status_code"`
		Error      string    `json:"error"`
		Reason     string    `json:"reason"`
		Next       time.Time `json:"next_attempt_at"`
	} `json:"data"`
}

func announcements(t *testing.T, requests []apptest.Request) []announced {
	t.Helper()
	list := make([]announced, len(requests))
	for i := range requests {
		must(t, json.Unmarshal(requests[i].Body, &list[i]))
	}
	return list
}

func kinds(list []announced) (types []string) {
	for i := range list {
		types = append(types, list[i].Type)
	}
	return types
}

// Each outcome is announced once to every subscriber: each failure that is retried, the success, the death.
func TestAnnouncements(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []int
		want    []string
		rows    []string
	}{
		{"success at the third", []int{500, 500, 200}, []string{"webhook.failed", "webhook.failed", "webhook.delivered"}, []string{"OJS-OBS-1", "OJS-OBS-2"}},
		{"never", slices.Repeat([]int{500}, 8), append(slices.Repeat([]string{"webhook.failed"}, 7), "webhook.dead"), []string{"OJS-OBS-3"}},
		{"refused", []int{404}, []string{"webhook.dead"}, []string{"OJS-OBS-3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace.Covers(t, c.rows...)
			hands := clock.NewManual(start)
			srv := boot(t, &tampered{}, hands, punctual)
			sink := apptest.NewSink(t)
			sink.Script("/", status(c.answers...)...)
			ep := srv.Endpoint(sink.URL("/"), dialect("ojs", "job.*"))
			srv.Endpoint(sink.URL("/tap"), dialect("ojs", "webhook.*"))
			ev := srv.Publish("job.done", `{}`)
			d := srv.Delivery(ev, ep)
			for i := range c.answers {
				srv.WaitAttempts(ev, ep, i+1)
				told := announcements(t, sink.WaitOn("/tap", i+1))
				if a := told[i]; a.Type != c.want[i] || a.Subject != d.ID.String() || a.Data.DeliveryID != d.ID.String() || a.Data.EventID != ev.String() ||
					a.Data.EventType != "job.done" || a.Data.Attempt != i+1 || a.Data.StatusCode != c.answers[i] ||
					a.Data.Next.IsZero() != (a.Type != "webhook.failed") || (a.Data.Error == "") != (a.Type == "webhook.delivered") ||
					(a.Data.Reason == "") != (a.Type != "webhook.dead") {
					t.Errorf("announcement %d: %+v", i+1, a)
				}
				if i < len(ojsWaits) {
					srv.Advance(ojsWaits[i])
				}
			}
			srv.Advance(time.Hour)
			srv.WaitAttempts(srv.Publish("job.done", `{}`), ep, 1)
			told := announcements(t, sink.WaitOn("/tap", len(c.want)+1))
			if got := kinds(told[:len(c.want)]); !slices.Equal(got, c.want) {
				t.Errorf("announced %v, want %v", got, c.want)
			}
		})
	}
}

// Deliveries of announcements are not announced: one event leads to one announcement only.
func TestAnnouncementsEnd(t *testing.T) {
	trace.Covers(t, "OJS-OBS-8")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	srv.Endpoint(sink.URL("/"), dialect("ojs", "*"))
	srv.Publish("job.done", `{}`)
	seen := announcements(t, sink.Wait(2))
	if got := kinds(seen); !slices.Equal(got, []string{"job.done", "webhook.delivered"}) {
		t.Errorf("delivered %v", got)
	}
	srv.Advance(time.Hour)
	srv.Publish("job.last", `{}`)
	seen = announcements(t, sink.Wait(4)) // all earlier announcements have arrived by then
	if got := kinds(seen); !slices.Equal(got, []string{"job.done", "webhook.delivered", "job.last", "webhook.delivered"}) {
		t.Errorf("delivered %v", got)
	}
}

// With ExplicitMeta the pattern "*" does not select announcements.
func TestAnnouncementsByNameOnly(t *testing.T) {
	srv := boot(t, &tampered{}, nil, func(c *engine.Config) { c.ExplicitMeta = true })
	sink := apptest.NewSink(t)
	srv.Endpoint(sink.URL("/all"), dialect("ojs", "*"))
	srv.Endpoint(sink.URL("/named"), dialect("ojs", "webhook.delivered"))
	srv.Publish("job.done", `{}`)
	sink.WaitOn("/named", 1)
	srv.Publish("job.done", `{}`)
	sink.WaitOn("/named", 2)
	if got := kinds(announcements(t, sink.Requests("/all"))); !slices.Equal(got, []string{"job.done", "job.done"}) {
		t.Errorf("all: %v", got)
	}
}

// Announcements without subscribers are not stored, except for deaths and subscription changes. Other profiles announce
// nothing, and tests of an endpoint are not announced.
func TestAnnouncementsNobodyWants(t *testing.T) {
	srv := boot(t, &tampered{}, nil, nil)
	sink := apptest.NewSink(t)
	sink.Script("/refuses", apptest.Status(404))
	takes := srv.Endpoint(sink.URL("/takes"), dialect("ojs", "taken"))
	refuses := srv.Endpoint(sink.URL("/refuses"), dialect("ojs", "refused"))
	native := srv.Endpoint(sink.URL("/refuses"), dialect("eds", "native"))
	srv.WaitDelivery(srv.Publish("taken", `{}`), takes, godwit.DeliveryAccepted)
	srv.WaitDelivery(srv.Publish("refused", `{}`), refuses, godwit.DeliveryTerminal)
	srv.WaitDelivery(srv.Publish("native", `{}`), native, godwit.DeliveryTerminal)
	receipts, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: []engine.Publication{{
		Type: "test", ContentType: "application/json", Body: []byte(`{}`), Endpoints: []godwit.EndpointID{refuses.ID}, Trigger: godwit.TriggerTest,
	}}})
	must(t, err)
	srv.WaitDelivery(receipts[0].Events[0].ID, refuses, godwit.DeliveryTerminal)
	must(t, srv.App.Engine().Announce(context.Background(), profile.Announcement{
		Type: profile.AnnounceSubscriptionDeleted, TenantID: srv.Tenant, EndpointID: takes.ID,
	}))
	for eventType, want := range map[string]int{"webhook.delivered": 0, "webhook.dead": 1, "webhook.subscription.deleted": 1} {
		if n := countEvents(t, srv, eventType); n != want {
			t.Errorf("%d events %s, want %d", n, eventType, want)
		}
	}
}

// When a commit's answer is lost and the commit is repeated, its announcements are sent once.
func TestAnnouncedOnceAcrossALostAnswer(t *testing.T) {
	lost := false
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		committed, err := commit()
		if err == nil && !lost && len(b.Results) > 0 {
			lost = true
			return nil, store.ErrUnavailable
		}
		return committed, err
	}}
	var told []godwit.NoticeKind
	noticed := make(chan struct{}, 8)
	srv := boot(t, s, nil, func(c *engine.Config) {
		c.OnNotice = func(n godwit.Notice) { told = append(told, n.Kind); noticed <- struct{}{} }
	})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404))
	fields := dialect("ojs", "job.*")
	fields["policy"] = map[string]any{"alert": true}
	ep := srv.Endpoint(sink.URL("/"), fields)
	srv.Endpoint(sink.URL("/tap"), dialect("ojs", "webhook.dead"))
	srv.WaitDelivery(srv.Publish("job.done", `{}`), ep, godwit.DeliveryTerminal)
	sink.WaitOn("/tap", 1)
	await(t, "the notice", noticed)
	must(t, srv.Stop())
	if n := len(sink.Requests("/tap")); n != 1 || !lost || !slices.Equal(told, []godwit.NoticeKind{godwit.NoticeDeadLetter}) {
		t.Errorf("announced %d times, told %v", n, told)
	}
}

// A death is reported to the account's admins: by a notice, and by an event to endpoints whose patterns name it. "*" does not
// select it.
func TestDeadLetterAlert(t *testing.T) {
	trace.Covers(t, "CCW-DLQ-3")
	hands := clock.NewManual(start)
	told := make(chan godwit.Notice, 16)
	srv := boot(t, &tampered{}, hands, func(c *engine.Config) {
		punctual(c)
		c.OnNotice = func(n godwit.Notice) {
			if n.Kind == godwit.NoticeDeadLetter {
				told <- n
			}
		}
	})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404), apptest.Status(500))
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*"))
	srv.Endpoint(sink.URL("/all"), dialect("eds", "*"))
	srv.Endpoint(sink.URL("/alerts"), dialect("eds", "godwit.alert.delivery_dead"))
	refused := srv.Publish("project.created", `{}`)
	srv.WaitDelivery(refused, ep, godwit.DeliveryTerminal)
	n := <-told
	if n.EventID != refused || n.EndpointID != ep.ID || n.Detail != "HTTP 404 (not retryable)" {
		t.Errorf("notice %+v", n)
	}
	failed := srv.Publish("project.created", `{}`)
	for i, wait := range cybercubeWaits {
		srv.WaitAttempts(failed, ep, i+1)
		srv.Advance(wait)
	}
	srv.WaitDelivery(failed, ep, godwit.DeliveryExhausted)
	if n := <-told; n.EventID != failed || n.Detail != "HTTP 500 after 7 attempts" {
		t.Errorf("notice %+v", n)
	}
	for i, r := range sink.WaitOn("/alerts", 2) {
		var body struct {
			Kind       string
			EndpointID string `json:"endpoint_id"`
			Endpoint   string
			EventID    string `json:"event_id"`
			EventType  string `json:"event_type"`
			Reason     string
			At         time.Time
		}
		must(t, json.Unmarshal(r.Body, &body))
		if body.Kind != "delivery_dead" || body.EndpointID != ep.ID.String() || body.EventType != "project.created" || body.Reason == "" ||
			body.EventID != []godwit.EventID{refused, failed}[i].String() || body.At.IsZero() {
			t.Errorf("alert %s", r.Body)
		}
		if _, err := profile.ParseCode(profile.CodeEndpoint, body.Endpoint); err != nil {
			t.Errorf("alert %s: %v", r.Body, err)
		}
	}
	if n := len(sink.Requests("/alerts")); n != 2 || len(told) != 0 {
		t.Errorf("%d alerts", n)
	}
	for _, r := range sink.Requests("/all") {
		if r.Header.Get("Godwit-Event-Type") != "project.created" {
			t.Errorf("* selected %v", r.Header)
		}
	}
}

// An alert that cannot be delivered raises no further alert.
func TestAlertsEnd(t *testing.T) {
	srv := boot(t, &tampered{}, nil, nil)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404))
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*", "godwit.alert.*"))
	srv.WaitDelivery(srv.Publish("project.created", `{}`), ep, godwit.DeliveryTerminal)
	sink.Wait(3) // the event, the alert about its death, and the alert that the endpoint is degraded
	srv.WaitRecorded("all recorded", func() bool {
		h, _ := srv.App.Engine().Health(ep.ID)
		return h.Terminal == 3
	}, func() string { return "" })
	must(t, srv.Stop())
	if n := len(sink.Requests("/")); n != 3 {
		t.Errorf("%d requests", n)
	}
}
