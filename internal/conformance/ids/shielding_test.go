package ids

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

// shieldingRows: a command calls an external system once.
func shieldingRows(t *testing.T, r *rig) {
	t.Run("S1", func(t *testing.T) {
		trace.Covers(t, "IDS-SHD-3")
		c := r.tenant(t)
		id := c.dies("called", c.envelope("charge.keyed", object{"id": "a"}))
		r.takeOver(t, r.successor(t))
		done := c.becomes(id, "executed", "")
		calls, keys := r.provider.calls(id)
		want := command.ProviderKey(done.Key, id+" charge")
		if calls != 2 || keys[0] != want || keys[1] != want || len(r.provider.has(id)) != 1 {
			t.Errorf("%d calls with the keys %v, want %s; charges %v", calls, keys, want, r.provider.has(id))
		}
		equal(t, "charge", fmt.Sprint(done.result()["charge"]), r.provider.has(id)[0])
	})
	t.Run("S3", func(t *testing.T) {
		trace.Covers(t, "IDS-SHD-5", "IDS-STO-17")
		c := r.tenant(t)
		r.provider.set(func(p *provider) { p.silent = true })
		id := c.dies("called", c.envelope("charge.ledgered", object{"id": "a"}))
		if calls, _ := r.provider.calls(id); calls != 1 {
			t.Fatalf("%d calls before", calls)
		}
		equal(t, "status after the crash", c.status(id).Status, "in_progress")
		x := r.successor(t)
		r.takeOver(t, x)
		c.becomes(id, "in_progress", "needs_reconciliation")
		repeat := c.must(202, "charge.ledgered", object{"id": "a"})
		if repeat.Status != "processing" || repeat.Substatus != "needs_reconciliation" || repeat.CommandID != id {
			t.Errorf("repeat: %s", repeat.Raw)
		}
		r.provider.set(func(p *provider) { p.silent = false })
		r.takeOver(t, x)
		done := c.becomes(id, "executed", "")
		same(t, &answer{Code: 200, Outcome: done.Outcome, OutcomeRef: done.OutcomeRef}, c.must(200, "charge.ledgered", object{"id": "a"}))
		calls, _ := r.provider.calls(id)
		equal(t, "calls", calls, 1)
		equal(t, "charge", fmt.Sprint(done.result()["charge"]), r.provider.has(id)[0])
		var types []string
		for _, it := range c.evidence("command_id=" + id) {
			types = append(types, it.Type)
		}
		if !slices.Contains(types, evidence.Recovered) || !slices.Contains(types, evidence.Unresolved) || !slices.Contains(types, evidence.ExecutedOK) {
			t.Errorf("evidence %v", types)
		}
	})
	t.Run("S3, before the call", func(t *testing.T) {
		trace.Covers(t, "IDS-SHD-5")
		c := r.tenant(t)
		id := c.dies("ledgered", c.envelope("charge.ledgered", object{"id": "a"}))
		rec := r.record(t, c.tenant, c.status(id).Key)
		if calls, _ := r.provider.calls(id); calls != 0 || len(rec.Ledger) != 1 || rec.Ledger[0].State != command.CallStarted {
			t.Fatalf("%d calls, ledger %+v", calls, rec.Ledger)
		}
		r.takeOver(t, r.successor(t))
		c.becomes(id, "executed", "")
		if calls, _ := r.provider.calls(id); calls != 1 { // the provider had nothing: it was not blind
			t.Errorf("%d calls", calls)
		}
	})
	t.Run("S4", func(t *testing.T) {
		trace.Covers(t, "IDS-SHD-6")
		c := r.tenant(t)
		r.provider.set(func(p *provider) { p.double = true })
		t.Cleanup(func() { r.provider.set(func(p *provider) { p.double = false }) })
		refunds := r.provider.refunded()
		id := c.dies("called", c.envelope("charge.compensable", object{"id": "a"}))
		equal(t, "charges before", len(r.provider.has(id)), 2)
		r.takeOver(t, r.successor(t))
		done := c.becomes(id, "compensated", "")
		equal(t, "charges", len(r.provider.has(id)), 1)
		equal(t, "refunds", r.provider.refunded()-refunds, 1)
		equal(t, "repeat", c.must(200, "charge.compensable", object{"id": "a"}).Status, "compensated")
		calls, _ := r.provider.calls(id)
		equal(t, "calls", calls, 1)
		found := false
		for _, it := range c.evidence("command_id=" + id) {
			found = found || it.Type == evidence.Compensated && it.OutcomeStatus == "compensated" && it.OutcomeRef == done.OutcomeRef
		}
		equal(t, "evidence of the compensation", found, true)
	})
	t.Run("repeats", func(t *testing.T) {
		trace.Covers(t, "IDS-SHD-7", "IDS-CLS-7")
		c := r.tenant(t)
		for _, name := range []string{"charge.keyed", "charge.ledgered", "charge.compensable"} {
			answers := c.many(50, name, object{"id": "a"})
			settled(t, c, answers)
			id := answers[0].CommandID
			if calls, _ := r.provider.calls(id); calls != 1 || len(r.provider.has(id)) != 1 {
				t.Errorf("%s: %d calls, charges %v", name, calls, r.provider.has(id))
			}
		}
	})
	t.Run("S2", func(t *testing.T) {
		trace.Covers(t, "IDS-SHD-4")
		c, sink := r.caller(t, r.Key), apptest.NewSink(t)
		r.Endpoint(sink.URL("/a"), apptest.Fields{"patterns": []string{"outbox.before"}})
		args := object{"type": "outbox.before", "data": object{"n": 1}}
		id := c.dies("handled", c.envelope("event.publish", args))
		equal(t, "events before the commit", len(c.events("outbox.before")), 0)
		r.takeOver(t, r.successor(t))
		c.becomes(id, "executed", "")
		equal(t, "events", len(c.events("outbox.before")), 1)
		sink.Wait(1)
		// A rejected command has no effects either.
		c.must(422, "probe.touch", object{"run": "refused", "end": "reject"})
		equal(t, "events of a rejection", len(c.events("ids.probe")), 0)
		equal(t, "requests", len(sink.Requests("/a")), 1)
	})
	t.Run("events of a command", func(t *testing.T) {
		trace.Covers(t, "IDS-SHD-8")
		c, sink := r.caller(t, r.Key), apptest.NewSink(t)
		for _, path := range []string{"/a", "/b"} {
			r.Endpoint(sink.URL(path), apptest.Fields{"patterns": []string{"outbox.once"}})
		}
		args := object{"type": "outbox.once", "data": object{"n": 1}}
		answers := c.many(20, "event.publish", args)
		settled(t, c, answers)
		events := c.events("outbox.once")
		if len(events) != 1 || events[0].ID != c.must(200, "event.publish", args).result()["event_id"] {
			t.Fatalf("events %+v", events)
		}
		// A later event shows that no other event was on its way.
		args["data"] = object{"n": 2}
		c.must(200, "event.publish", args)
		for _, path := range []string{"/a", "/b"} {
			requests := sink.WaitOn(path, 2)
			if len(requests) != 2 || string(requests[0].Body) == string(requests[1].Body) {
				t.Errorf("%s got %d requests", path, len(requests))
			}
		}
	})
}

// listed is an event as the API lists it.
type listed struct {
	ID         string            `json:"id"`
	Attributes map[string]string `json:"attributes"`
}

// events lists the tenant's events of a type.
func (c *caller) events(kind string) []listed {
	c.t.Helper()
	var got struct {
		Items []listed `json:"items"`
	}
	c.get("/v1/events?limit=100&type="+kind, &got)
	return got.Items
}

// TestOutboxOutlivesItsServer stops a server between the commit of an event and its delivery. If the store supports several
// servers, another one runs from the beginning and takes over.
func TestOutboxOutlivesItsServer(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "IDS-SHD-4")
		r := newRealRig(t, o)
		sink := apptest.NewSink(t)
		ep := r.Endpoint(sink.URL("/a"))
		c := r.caller(t, r.Key)
		publish := func(n int) { c.must(200, "event.publish", object{"type": "order.paid", "data": object{"n": n}}) }
		var standby *app.App
		if r.Config.Postgres() {
			standby = beside(t, r)
		}
		publish(1)
		sink.WaitOn("/a", 1)
		r.EndpointCall(ep, "POST", "/pause", nil)
		publish(2)
		if standby == nil {
			r = r.again()
		} else {
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
			<-standby.Started()
			r.Server.URL, r.Server.App = standby.URL(), standby
		}
		c = c.on(r)
		publish(2)
		equal(t, "requests while paused", len(sink.Requests("/a")), 1)
		r.EndpointCall(ep, "POST", "/resume", nil)
		publish(3)
		sink.WaitOn("/a", 3)
		bodies := map[string]int{}
		for _, req := range sink.Requests("/a") {
			bodies[string(req.Body)]++
		}
		if len(bodies) != 3 || bodies[`{"n":1}`] != 1 || bodies[`{"n":2}`] != 1 || bodies[`{"n":3}`] != 1 {
			t.Errorf("delivered %v", bodies)
		}
	})
}

// beside runs a second server on the same database; it delivers after the first one has stopped.
func beside(t *testing.T, r *rig) *app.App {
	t.Helper()
	cfg := r.Config
	cfg.Node, cfg.Data = "second", t.TempDir()
	cfg.Commands.EvidenceKey = filepath.Join(r.Config.Data, "evidence.key") // the nodes of a store sign with one key
	a, err := app.New(context.Background(), cfg, app.Dependencies{Log: r.made.Log, NoLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestRemoteGetsOneKey: a tenant's own service executes a command over TLS. It fails twice, and sees the same key each time.
func TestRemoteGetsOneKey(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "IDS-SHD-3")
		ca := apptest.CAFile(t)
		sink := apptest.NewSink(t, apptest.WithTLS(apptest.SinkTLS{}))
		o.Configure = func(c *config.Config) { c.CAFile = ca }
		r := newRig(t, o)
		ep := r.Endpoint(sink.URL("/execute"), apptest.Fields{"patterns": []string{"nothing.else"}})
		file := filepath.Join(t.TempDir(), "commands.json")
		declared, err := json.Marshal(object{"commands": []object{{
			"entity": "shipment", "action": "book", "description": "Books a shipment.", "class": "I3", "class_justification": "A carrier is called.",
			"shielding": []string{"S1"}, "scopes": []string{"ingest"}, "tenant": r.Tenant.String(), "remote": object{"endpoint": ep.ID.String()},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, declared, 0o600); err != nil {
			t.Fatal(err)
		}
		r = r.again(func(o *apptest.Options) {
			o.Configure = func(c *config.Config) { c.CAFile, c.Commands.File = ca, file }
		})
		sink.Script("/execute", apptest.Status(503), apptest.Hangup(), apptest.Status(200).Body("application/json", `{"parcel":"P-1","summary":"Booked."}`))
		c := r.caller(t, r.Key)
		first := c.must(200, "shipment.book ORD-1", object{"weight": 3})
		equal(t, "summary", first.Summary, "Booked.")
		equal(t, "parcel", fmt.Sprint(first.result()["parcel"]), "P-1")
		same(t, first, c.must(200, "shipment.book ORD-1", object{"weight": 3}))
		requests := sink.Requests("/execute")
		equal(t, "requests", len(requests), 3)
		want := command.ProviderKey(first.Key, first.CommandID+" ")
		for _, req := range requests {
			equal(t, "key at the service", strings.Trim(req.Key(), `"`), want)
		}
	})
}
