package profile

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func number(n int64) json.Number { return json.Number(itoa(n)) }

func TestAnnouncements(t *testing.T) {
	trace.Covers(t, "OJS-OBS-6")
	id := godwit.NewEventID(now)
	envelope := func(kind, subject string, data map[string]any) map[string]any {
		return map[string]any{"specversion": "1.0", "id": id.String(), "type": kind, "source": "ojs://godwit/webhooks",
			"time": "2026-06-01T12:00:00Z", "subject": subject, "data": data}
	}
	del, sub := testDeliveryID.String(), testEndpointID.String()
	about := Announcement{TenantID: godwit.NewTenantID(now), EndpointID: testEndpointID, DeliveryID: testDeliveryID, EventID: `odd "id"`, EventType: "job.failed", At: now}
	failed, dead, delivered := about, about, about
	failed.Type, failed.Attempt, failed.StatusCode, failed.Error, failed.NextAt = AnnounceFailed, 2, 500, "HTTP 500", now.Add(90*time.Second+time.Millisecond)
	dead.Type, dead.Attempt, dead.Error, dead.Reason = AnnounceDead, 8, "timeout", "exhausted"
	delivered.Type, delivered.Attempt, delivered.StatusCode = AnnounceDelivered, 1, 204
	for _, c := range []struct {
		a    Announcement
		want map[string]any
	}{
		{failed, envelope("webhook.failed", del, map[string]any{"delivery_id": del, "subscription_id": sub, "event_id": `odd "id"`, "event_type": "job.failed",
			"attempt": number(2), "status_code": number(500), "error": "HTTP 500", "next_attempt_at": "2026-06-01T12:01:30.001Z"})},
		{dead, envelope("webhook.dead", del, map[string]any{"delivery_id": del, "subscription_id": sub, "event_id": `odd "id"`, "event_type": "job.failed",
			"attempt": number(8), "error": "timeout", "reason": "exhausted"})},
		{delivered, envelope("webhook.delivered", del, map[string]any{"delivery_id": del, "subscription_id": sub, "event_id": `odd "id"`, "event_type": "job.failed",
			"attempt": number(1), "status_code": number(204)})},
		{Announcement{Type: AnnounceSubscriptionCreated, EndpointID: testEndpointID, At: now},
			envelope("webhook.subscription.created", sub, map[string]any{"subscription_id": sub})},
		{Announcement{Type: AnnounceSubscriptionDeleted, EndpointID: testEndpointID, At: now},
			envelope("webhook.subscription.deleted", sub, map[string]any{"subscription_id": sub})},
	} {
		if got := decode(t, c.a.Envelope(id)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.a.Type, got, c.want)
		}
		if !Meta(c.a.Type) || godwit.ValidEventType(c.a.Type) != "" {
			t.Errorf("%s is no event of our own", c.a.Type)
		}
	}
	for eventType, want := range map[string]bool{"webhook.test": true, "godwit.alert.delivery_dead": true, "webhooks.x": false, "job.failed": false, "webhook": false, "": false} {
		if Meta(eventType) != want {
			t.Errorf("%s: %v", eventType, !want)
		}
	}
}
