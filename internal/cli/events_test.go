package cli

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// has runs a command and checks that its output has all the parts.
func (u *user) has(args []string, parts ...string) string {
	u.t.Helper()
	stdout, stderr := u.must(args...)
	for _, part := range parts {
		if !strings.Contains(stdout+stderr, part) {
			u.t.Errorf("%v printed\n%s%s; want %q", args, stdout, stderr, part)
		}
	}
	return stdout
}

func TestEventsAndDeliveries(t *testing.T) {
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404))
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	ep := srv.Endpoint(sink.URL("/"))
	ev := srv.PublishKey("order.paid", "a-key-long-enough", `{"order":42}`)
	dead := srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal).ID.String()
	srv.Publish("other.thing", `{}`)

	if stdout := u.has([]string{"events", "list", "--type", "order.paid", "--since", "1h", "--json"}, ev.String()); strings.Count(stdout, "\n") != 1 {
		t.Errorf("filtered: %s", stdout)
	}
	u.has([]string{"events", "list", "--idempotency-key", "a-key-long-enough"}, ev.String())
	u.has([]string{"events", "list", "--until", "1h"}, "no events")
	u.refused([]string{"events", "list", "--since", "long ago"}, "--since", "is not a time")
	u.has([]string{"events", "get", ev.String()}, "order.paid", "deliveries: 1", dead, "terminal")
	if stdout, _ := u.must("events", "body", ev.String()); stdout != `{"order":42}` {
		t.Errorf("body %q", stdout)
	}

	u.has([]string{"deliveries", "list", "--event", ev.String(), "--endpoint", ep.ID.String(), "--status", "terminal"}, dead, "404")
	u.has([]string{"deliveries", "list", "--status", "pending", "--type", "order.paid"}, "no deliveries")
	u.has([]string{"deliveries", "get", dead}, "attempts: 1", "terminal", "404")
	u.refused([]string{"deliveries", "list", "--status", "lost"}, "pending")

	u.has([]string{"dead-letters", "list", "--endpoint", ep.ID.String(), "--type", "order.paid"}, dead)
	u.has([]string{"dead-letters", "get", shortID(dead)}, "delivery:", "event:", dead)
	u.has([]string{"dead-letters", "export", "--status", "terminal", "--type", "order.paid"}, dead)
	u.refused([]string{"dead-letters", "replay"}, "--all")
	u.refused([]string{"dead-letters", "replay", dead, "--all"}, "not both")
	u.refused([]string{"dead-letters", "purge"}, "--all")
	u.refused([]string{"dead-letters", "purge", "--all"}, "--yes")

	u.has([]string{"events", "search", "ORDER\":42", "--since", "1h"}, ev.String(), "order.paid", `{"order":42}`, "1 found, 2 examined")
	u.has([]string{"events", "search", "--idempotency-key", "a-key-long-enough", "--json"}, `"match":"a-key-long-enough"`)
	u.has([]string{"events", "search", "--limit", "1"}, "there may be more")
	u.refused([]string{"events", "search", "--limit", "0"}, "--limit")
	u.has([]string{"settings", "--changed"}, "SETTING", "node", "on sqlite")
	u.has([]string{"settings", "--json"}, `"limits-window"`)
	u.has([]string{"events", "explain", ev.String()}, "GOT IT", "*", "matched", dead, "endpoint-not-found 404")
	u.has([]string{"events", "explain", ev.String(), "--endpoint", ep.ID.String(), "--json"}, `"reason":"matched"`)

	// Cancelled while it waits, then tried again by hand.
	srv.EndpointCall(ep, "POST", "/pause", nil)
	u.has([]string{"deliveries", "retry", dead}, dead, "pending")
	u.has([]string{"deliveries", "cancel", dead}, dead, "cancelled")
	u.refused([]string{"deliveries", "retry"}, "--all")
	u.refused([]string{"deliveries", "retry", dead, "--all"}, "not both")
	u.refused([]string{"deliveries", "retry", "--status", "cancelled", "--type", "order.paid"}, "--yes")
	u.has([]string{"deliveries", "retry", "--status", "cancelled", "--type", "order.paid", "--dry-run"}, "1 match")
	u.has([]string{"deliveries", "retry", "--status", "cancelled", "--event", ev.String(), "--yes"}, "1 retried")
	u.interactive, u.stdin = true, "no\n"
	u.refused([]string{"deliveries", "cancel", "--all"}, "not confirmed")
	u.stdin = "yes\n"
	u.has([]string{"deliveries", "cancel", "--endpoint", ep.ID.String()}, "Cancel 1 deliveries?", "1 cancelled")
	u.interactive = false
	u.has([]string{"deliveries", "cancel", "--all"}, "0 cancelled")
	srv.EndpointCall(ep, "POST", "/resume", nil)
	sink.Script("/", apptest.Status(200))
	u.has([]string{"events", "replay", ev.String(), "--endpoint", ep.ID.String()}, dead)
	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
}

func TestDeadLettersAreReplayedAndPurged(t *testing.T) {
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404))
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	ep := srv.Endpoint(sink.URL("/"))
	die := func() godwit.EventID {
		ev := srv.Publish("order.paid", `{}`)
		srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
		return ev
	}
	first, second := die(), die()
	sink.Script("/", apptest.Status(200))
	u.has([]string{"dead-letters", "replay", srv.Delivery(first, ep).ID.String()}, "pending")
	srv.WaitDelivery(first, ep, godwit.DeliveryAccepted)
	u.has([]string{"dead-letters", "replay", "--type", "order.paid", "--json"}, `{"replayed":1}`)
	srv.WaitDelivery(second, ep, godwit.DeliveryAccepted)
	u.has([]string{"dead-letters", "list"}, "no dead letters")
	if stdout := u.has([]string{"dead-letters", "list", "--replayed", "--json"}, first.String()); strings.Count(stdout, "\n") != 2 {
		t.Errorf("with those that were replayed: %s", stdout)
	}
	u.interactive, u.stdin = true, "no\n"
	u.refused([]string{"dead-letters", "purge", "--all", "--replayed"}, "nothing was done")
	u.stdin = "yes\n"
	u.has([]string{"dead-letters", "purge", "--all", "--replayed"}, "2 dead letters", "Remove them for good?", "2 removed")
	u.has([]string{"dead-letters", "list", "--replayed"}, "no dead letters")
}
