package sqlite

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

//go:embed testdata/0001_rows.sql
var firstRows string

// openUpgraded makes a database as the first release did, adds the rows in more, and opens it with this release.
func openUpgraded(t *testing.T, more string) *Store {
	t.Helper()
	return openSince(t, 1, more)
}

// openSince is openUpgraded for a database with the schema of the given version.
func openSince(t *testing.T, version int, more string) *Store {
	t.Helper()
	all, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c, err := connect(t.Context(), filepath.Join(dir, fileName), "journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range all[:version] {
		if err := apply(t.Context(), c, m); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			continue
		}
		if err := c.script(firstRows + more); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	return openAt(t, dir, Options{Exclusive: true})
}

// last makes the short ids of the rows.
func last[I ~[16]byte](n byte) I { return I{15: n} }

// upgraded compares values from an upgraded database.
func upgraded[T any](t *testing.T, what string, want T) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", what, got, err, want)
		}
	}
}

// Everything in a database of the first release survives the upgrade.
func TestUpgrade(t *testing.T) {
	s, ctx := openUpgraded(t, ""), t.Context()
	tenant, endpoint := last[godwit.TenantID](1), last[godwit.EndpointID](0x11)
	at := func(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

	owner, err := s.Tenant(ctx, tenant)
	if err != nil || !validCode(owner.Code) {
		t.Fatalf("tenant is %+v, %v", owner, err)
	}
	upgraded(t, "tenant", &godwit.Tenant{ID: tenant, EnvironmentID: godwit.DefaultEnvironment, Version: 1, Code: owner.Code, Name: "acme", RequireIdempotencyKey: true, CreatedAt: noon})(s.Tenant(ctx, tenant))
	e, err := s.Endpoint(ctx, tenant, endpoint)
	if err != nil || !validCode(e.Code) || e.Version != 7 || string(e.Metadata["team"]) != `"billing"` || !bytes.Equal(e.Sealed, []byte{0, 0xff}) {
		t.Fatalf("endpoint is %+v, %v", e, err)
	}
	upgraded(t, "endpoint by its code", e)(s.EndpointByCode(ctx, tenant, e.Code))
	upgraded(t, "loaded", &store.LoadedEndpoint{
		Endpoint: *e, Account: owner.Code,
		Secrets: []godwit.Secret{{ID: last[godwit.SecretID](0x21), EndpointID: endpoint, TenantID: tenant, Algorithm: "ed25519",
			Sealed: []byte{0xaa}, PublicKey: []byte{0xbb}, CreatedAt: noon, NotBefore: noon}},
		Health: godwit.Health{EndpointID: endpoint, ConsecutiveFailures: 1, ConsecutiveTerminal: 2, Accepted: 3, Transient: 4, Terminal: 5,
			LastAcceptedAt: noon, LastFailureAt: at(1), LastReason: "status", AvgDurationMS: 12.5, UpdatedAt: at(1)},
	})(s.LoadEndpoint(ctx, endpoint))

	event := &godwit.Event{ID: last[godwit.EventID](0x31), TenantID: tenant, Type: "order.paid", Key: "key-1", ContentType: "application/json",
		Attributes: map[string]string{"region": "eu"}, Principal: last[godwit.KeyID](3), CreatedAt: noon, Body: make([]byte, 20000)}
	upgraded(t, "event", event)(s.Event(ctx, tenant, event.ID))
	delivery := func(n byte, status godwit.DeliveryStatus, reason godwit.Reason, attempts, code int, updated, first float64) godwit.Delivery {
		return godwit.Delivery{ID: last[godwit.DeliveryID](n), TenantID: tenant, EventID: event.ID, EndpointID: endpoint, Status: status,
			Reason: reason, Attempts: attempts, LastStatus: code, DueAt: noon, CreatedAt: noon, UpdatedAt: at(updated), EventType: "order.paid",
			Run: godwit.Run{Trigger: godwit.TriggerAccept, Attempts: attempts, FirstAt: at(first)}}
	}
	accepted := delivery(0x41, godwit.DeliveryAccepted, "accepted", 1, 200, 1, 0.5)
	pending := delivery(0x42, godwit.DeliveryPending, "timeout", 2, 0, 30, 0.5)
	pending.DueAt = at(60)
	terminal := delivery(0x43, godwit.DeliveryTerminal, "status", 1, 422, 2, 1.5)
	upgraded(t, "deliveries of the event", []godwit.Delivery{terminal, pending, accepted})(
		s.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, EventID: event.ID}, store.Page{Limit: 9}))
	upgraded(t, "pending deliveries", []godwit.Delivery{pending})(
		s.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, Status: godwit.DeliveryPending}, store.Page{Limit: 9}))
	upgraded(t, "terminal deliveries", []godwit.Delivery{terminal})(
		s.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, Status: godwit.DeliveryTerminal}, store.Page{Limit: 9}))

	attempt := func(d *godwit.Delivery, n int, id byte, trigger godwit.Trigger, started float64, v godwit.Verdict) godwit.Attempt {
		return godwit.Attempt{ID: last[godwit.AttemptID](id), DeliveryID: d.ID, TenantID: tenant, EventID: d.EventID, EndpointID: endpoint, N: n,
			Trigger: trigger, StartedAt: at(started), Duration: 1500 * time.Microsecond, URL: "https://receiver.example/hook", Verdict: v}
	}
	ok := attempt(&accepted, 1, 0x51, "accept", 0.5, godwit.Verdict{Outcome: godwit.Accepted, Reason: "accepted"})
	ok.Status, ok.Trace.Proto = 200, "HTTP/1.1"
	upgraded(t, "attempts of the accepted one", []godwit.Attempt{ok})(s.Attempts(ctx, tenant, accepted.ID))
	first := attempt(&pending, 1, 0x52, "accept", 0.5, godwit.Verdict{Outcome: godwit.Transient, Reason: "status", Class: "application", RetryAfter: 5 * time.Second})
	first.Status, first.NextAt = 503, at(20)
	second := attempt(&pending, 2, 0x53, "retry", 29, godwit.Verdict{Outcome: godwit.Transient, Reason: "timeout", Class: "transport"})
	second.NextAt, second.Duration, second.Trace.Detail = at(60), time.Second, "slow"
	upgraded(t, "attempts of the pending one", []godwit.Attempt{first, second})(s.Attempts(ctx, tenant, pending.ID))
	log, err := s.ListAttempts(ctx, store.AttemptFilter{TenantID: tenant, EndpointID: endpoint}, 9)
	if err != nil || len(log) != 4 || !reflect.DeepEqual(log[0].Attempt, second) || log[0].Run != 2 || log[0].EventType != "order.paid" {
		t.Errorf("log of the endpoint is %+v, %v", log, err)
	}

	refused := godwit.Verdict{Outcome: godwit.Terminal, Reason: "status", Class: "application"}
	swept := terminal
	swept.ID, swept.EventID, swept.EventType = last[godwit.DeliveryID](0x44), last[godwit.EventID](0x32), "order.sent"
	swept.DueAt, swept.CreatedAt, swept.UpdatedAt, swept.Run.FirstAt = at(-100), at(-100), at(-98), at(-98.5)
	letters := []godwit.DeadLetter{
		{Delivery: swept, DeadAt: at(-98), LastDetail: "answered 422", Event: &godwit.Event{ID: swept.EventID, TenantID: tenant,
			Type: "order.sent", Key: "key-2", ContentType: "text/plain", Principal: last[godwit.KeyID](3), CreatedAt: at(-100), Body: []byte("hello")}},
		{Delivery: terminal, DeadAt: at(2), LastDetail: "answered 422", Event: event},
	}
	upgraded(t, "dead letters", letters)(s.ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: tenant, WithBody: true}, store.Page{Limit: 9}))
	upgraded(t, "delivery that was swept", &swept)(s.Delivery(ctx, tenant, swept.ID))
	late := attempt(&swept, 1, 0x55, "accept", -98.5, refused)
	late.Status = 422
	upgraded(t, "attempts of one that was swept", []godwit.Attempt{late})(s.Attempts(ctx, tenant, swept.ID))

	if leases, err := storetest.TakeAll(ctx, s, "node-a"); err != nil || leases[17].Shard != 17 || leases[17].Epoch != 5 {
		t.Errorf("leases are %v, %v", leases, err)
	}
	c, err := storetest.ClaimOne(ctx, s, store.Claim{EndpointID: endpoint, Epoch: 5, Now: at(60), Limit: 9})
	if err != nil || len(c.Work) != 1 || !reflect.DeepEqual(c.Work[0], godwit.Work{Delivery: pending, Event: event}) {
		t.Errorf("claimed %+v, %v", c, err)
	}
	// The deliveries are swept with their event, like new ones.
	n, err := s.Sweep(ctx, store.Sweep{Now: at(90), EventsBefore: at(80), Limit: 100})
	if err != nil || n.Events != 0 {
		t.Errorf("swept %+v under a claim, %v", n, err)
	}
	if due, err := s.Requeue(ctx, store.Requeue{TenantID: tenant, Deliveries: []godwit.DeliveryID{terminal.ID, swept.ID}, Trigger: godwit.TriggerReplay, Now: at(90)}); err != nil || len(due) != 2 {
		t.Errorf("requeued %+v, %v", due, err)
	}
}

func validCode(code string) bool {
	_, err := profile.ParseCode(profile.CodeEndpoint, profile.FormatCode(profile.CodeEndpoint, code))
	return err == nil
}

// The upgrade gives each row a unique code.
func TestUpgradeGivesCodes(t *testing.T) {
	const many = 20000
	s := openUpgraded(t, fmt.Sprintf(`WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %d)
		INSERT INTO endpoints SELECT unhex(printf('ff%%030x', n)), x'00000000000000000000000000000001', 'https://many.example/', 'POST', 'eds', '',
			NULL, NULL, NULL, NULL, NULL, NULL, 'active', '', 0, 0, 0, 1 FROM n;`, many))
	seen := map[string]bool{}
	letters := map[rune]bool{}
	err := s.LoadEndpoints(t.Context(), func(le *store.LoadedEndpoint) error {
		if code := le.Endpoint.Code; !validCode(code) || seen[code] {
			t.Fatalf("code %q is not valid or not the first", code)
		}
		seen[le.Endpoint.Code] = true
		for _, c := range le.Endpoint.Code {
			letters[c] = true
		}
		return nil
	})
	if err != nil || len(seen) != many+1 || len(letters) != 32 {
		t.Errorf("%d codes of %d letters, %v", len(seen), len(letters), err)
	}
}

// A database from a release without commands accepts commands and keeps its other rows.
func TestUpgradeTakesCommands(t *testing.T) {
	s, ctx := openSince(t, 3, ""), t.Context()
	if st, err := s.Status(ctx); err != nil || st.Version != st.Current || st.Current < 4 || len(st.Pending) != 0 {
		t.Fatalf("schema is %+v, %v", st, err)
	}
	tenant, endpoint := last[godwit.TenantID](1), last[godwit.EndpointID](0x11)
	e, err := s.Endpoint(ctx, tenant, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	e.Status, e.StatusAt, e.Version = godwit.EndpointDeleted, noon, e.Version+1
	record := command.Record{Tenant: tenant.String(), Key: "key", CommandID: "cmd_1", Status: command.Executed, CreatedAt: noon, UpdatedAt: noon, Version: 1}
	var o command.Outcome
	command.Add(&o, store.ChangeEndpoint{Endpoint: e})
	purged := command.Add(&o, store.PurgeDead{Filter: store.DeadLetterFilter{TenantID: tenant}, Limit: 9})
	results, err := s.Advance(ctx, noon, []*command.Step{{Tenant: record.Tenant, Key: record.Key, Effects: o.Effects, Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Record: &record, Evidence: []evidence.Entry{{Type: evidence.ExecutedOK, At: noon}}}, nil
	}}})
	if err != nil || results[0].Err != nil || *purged.In(results[0].Applied) != (store.PurgedDead{Purged: 2}) {
		t.Fatalf("results are %+v, %v", results, err)
	}
	upgraded(t, "record", &record)(s.Find(ctx, record.Tenant, record.Key))
	if head, err := s.EvidenceHead(ctx, record.Tenant); err != nil || head.Seq != 1 {
		t.Errorf("head of evidence is %+v, %v", head, err)
	}
	if _, err := s.Endpoint(ctx, tenant, endpoint); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("endpoint: %v", err)
	}
}

// TestUpgradeFindsTheEventsOfRecords: earlier releases kept the event of an idempotency record in the location of its answer.
func TestUpgradeFindsTheEventsOfRecords(t *testing.T) {
	const row = "INSERT INTO idempotency_records VALUES (%d, x'%064x', x'00000000000000000000000000000001', x'02', 202, '', '%s', 0, %d, NULL);\n"
	event := godwit.NewEventID(time.Now())
	rows, want := "", []godwit.EventID{event, event, {}, {}}
	for i, location := range []string{"/v1/events/" + event.String(), event.String(), "/v1/endpoints/sub_1", "evt_of_another_kind"} {
		rows += fmt.Sprintf(row, 100+i, 100+i, location, int64(1)<<60)
	}
	s := openUpgraded(t, rows)
	for i := range want {
		r, err := s.Recorded(t.Context(), [32]byte{31: byte(100 + i)}, time.Now())
		if err != nil || r.EventID != want[i] {
			t.Errorf("record %d: event %v, %v; want %v", i, r.EventID, err, want[i])
		}
	}
}
