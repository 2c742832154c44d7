package postgres

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

//go:embed testdata/0001_rows.sql
var firstRows string

// released lists the checksums of the released migrations. Existing databases were made by them, so they never change.
var released = []string{
	"74524dfa1d070b795a09df990a8aed9dc9cc66ac00755b079c1f42d9c4c207a5",
	"864a05b5fb4ae57a6ed0b5fa3c44d8ecdfd553f9c9bc4a1fcdb00e981fd544ad",
	"e0c90770e8b3658fdadb1e923a97177891b1f63cdd3d2e8aa28cbb8e70d2f618",
	"f2ca5a346cd4df30ac7eec4bc96df860a3752852947d4e85b0c4ace61225c81a",
}

func TestReleasedMigrationsStay(t *testing.T) {
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range released {
		sum := sha256.Sum256([]byte(list[i].sql))
		if hex.EncodeToString(sum[:]) != want {
			t.Errorf("migration %s was released and has changed: write a new one", list[i].name)
		}
	}
}

// openUpgraded makes a database as the first release did, adds the rows in more, and opens it with this release.
func openUpgraded(t *testing.T, more string) *Store {
	t.Helper()
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	url := postgrestest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := apply(t.Context(), conn, list[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().Exec(t.Context(), firstRows+more).ReadAll(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), url, Options{Now: suiteTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// old makes the ids of the rows: time-ordered ones and plain numbers.
func old[I ~[16]byte](n byte) I { return I{6: 0x70, 8: 0x80, 15: n} }

func dated[I ~[16]byte](n byte) I {
	id := old[I](n)
	copy(id[:], "\x01\x9c\xec\x37\xb6\x00")
	return id
}

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
	tenant, endpoint := old[godwit.TenantID](1), old[godwit.EndpointID](0x11)
	at := func(seconds float64) time.Time { return suiteTime.Add(time.Duration(seconds * float64(time.Second))) }

	owner, err := s.Tenant(ctx, tenant)
	if err != nil || !validCode(owner.Code) {
		t.Fatalf("tenant is %+v, %v", owner, err)
	}
	upgraded(t, "tenant", &godwit.Tenant{ID: tenant, EnvironmentID: godwit.DefaultEnvironment, Version: 1, Code: owner.Code, Name: "acme", RequireIdempotencyKey: true, CreatedAt: at(0)})(s.Tenant(ctx, tenant))
	e, err := s.Endpoint(ctx, tenant, endpoint)
	if err != nil || !validCode(e.Code) || e.Version != 7 || string(e.Metadata["team"]) != `"billing"` || len(e.Sealed) != 2 || !e.ReenableAt.IsZero() {
		t.Fatalf("endpoint is %+v, %v", e, err)
	}
	upgraded(t, "endpoint by its code", e)(s.EndpointByCode(ctx, tenant, e.Code))
	upgraded(t, "loaded", &store.LoadedEndpoint{
		Endpoint: *e, Account: owner.Code,
		Secrets: []godwit.Secret{{ID: old[godwit.SecretID](0x21), EndpointID: endpoint, TenantID: tenant, Algorithm: "ed25519",
			Sealed: []byte{0xaa}, PublicKey: []byte{0xbb}, CreatedAt: at(0), NotBefore: at(0)}},
		Health: godwit.Health{EndpointID: endpoint, ConsecutiveFailures: 1, ConsecutiveTerminal: 2, Accepted: 3, Transient: 4, Terminal: 5,
			LastAcceptedAt: at(0), LastFailureAt: at(1), LastReason: "status", AvgDurationMS: 12.5, UpdatedAt: at(1)},
	})(s.LoadEndpoint(ctx, endpoint))

	event := &godwit.Event{ID: dated[godwit.EventID](0x31), TenantID: tenant, Type: "order.paid", Key: "key-1", ContentType: "application/json",
		Attributes: map[string]string{"region": "eu"}, Principal: old[godwit.KeyID](3), CreatedAt: at(0), Body: make([]byte, 20000)}
	upgraded(t, "event", event)(s.Event(ctx, tenant, event.ID))
	if list, err := s.EventsAfter(ctx, store.EventRange{TenantID: tenant, Limit: 9}); err != nil || len(list) != 2 || list[0].Type != "order.none" {
		t.Errorf("events are %+v, %v", list, err)
	}
	checkUpgradedDeliveries(t, s, event, at)
}

func checkUpgradedDeliveries(t *testing.T, s *Store, event *godwit.Event, at func(float64) time.Time) {
	ctx, tenant, endpoint := t.Context(), event.TenantID, old[godwit.EndpointID](0x11)
	delivery := func(n byte, status godwit.DeliveryStatus, reason godwit.Reason, attempts, code int, updated, first float64) godwit.Delivery {
		return godwit.Delivery{ID: dated[godwit.DeliveryID](n), TenantID: tenant, EventID: event.ID, EndpointID: endpoint, Status: status,
			Reason: reason, Attempts: attempts, LastStatus: code, DueAt: at(0), CreatedAt: at(0), UpdatedAt: at(updated), EventType: "order.paid",
			Run: godwit.Run{Trigger: godwit.TriggerAccept, Attempts: attempts, FirstAt: at(first)}}
	}
	accepted := delivery(0x41, godwit.DeliveryAccepted, "accepted", 1, 200, 1, 0.5)
	pending := delivery(0x42, godwit.DeliveryPending, "timeout", 2, 0, 30, 0.5)
	pending.DueAt = at(60)
	terminal := delivery(0x43, godwit.DeliveryTerminal, "status", 1, 422, 2, 1.5)
	upgraded(t, "deliveries of the event", []godwit.Delivery{terminal, pending, accepted})(
		s.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, EventID: event.ID}, store.Page{Limit: 9}))
	log, err := s.ListAttempts(ctx, store.AttemptFilter{TenantID: tenant, EndpointID: endpoint}, 9)
	if err != nil || len(log) != 4 || log[0].Attempt.ID != dated[godwit.AttemptID](0x53) || log[0].Run != 2 ||
		log[0].EventType != "order.paid" || log[0].Attempt.Trace.Detail != "slow" || log[1].Final != godwit.DeliveryTerminal {
		t.Errorf("log of the endpoint is %+v, %v", log, err)
	}

	letters, err := s.ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: tenant, WithBody: true}, store.Page{Limit: 9})
	if err != nil || len(letters) != 2 {
		t.Fatalf("dead letters are %+v, %v", letters, err)
	}
	upgraded(t, "dead letter", letters[0])(godwit.DeadLetter{Delivery: terminal, Event: event, DeadAt: at(2), LastDetail: "answered 422"}, nil)
	swept := letters[1].Delivery
	if swept.EventType != "order.sent" || string(letters[1].Event.Body) != "hello" {
		t.Errorf("dead letter of a swept event is %+v", letters[1])
	}
	upgraded(t, "delivery that was swept", &swept)(s.Delivery(ctx, tenant, swept.ID))

	leases, err := storetest.TakeAll(ctx, s, "node-a")
	if err != nil || !slices.ContainsFunc(leases, func(l godwit.Lease) bool { return l.Shard == 17 && l.Epoch == 5 }) {
		t.Errorf("leases are %v, %v", leases, err)
	}
	c, err := storetest.ClaimOne(ctx, s, store.Claim{EndpointID: endpoint, Epoch: 5, Now: at(60), Limit: 9})
	pending.EventType = ""
	if err != nil || len(c.Work) != 1 || !reflect.DeepEqual(c.Work[0], godwit.Work{Delivery: pending, Event: event}) {
		t.Errorf("claimed %+v, %v", c, err)
	}
	due, err := s.Requeue(ctx, store.Requeue{
		TenantID: tenant, Deliveries: []godwit.DeliveryID{terminal.ID, swept.ID}, Trigger: godwit.TriggerReplay, Now: at(90)})
	if err != nil || len(due) != 2 {
		t.Errorf("requeued %+v, %v", due, err)
	}
	letters, err = s.ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: tenant, Replayed: true}, store.Page{Limit: 9})
	if err != nil || len(letters) != 2 || !letters[0].ReplayedAt.Equal(at(90)) || !letters[1].ReplayedAt.Equal(at(90)) {
		t.Errorf("replayed dead letters are %+v, %v", letters, err)
	}
}

func validCode(code string) bool {
	_, err := profile.ParseCode(profile.CodeEndpoint, profile.FormatCode(profile.CodeEndpoint, code))
	return err == nil
}

// The upgrade gives each row a unique code.
func TestUpgradeGivesCodes(t *testing.T) {
	const many = 20000
	s := openUpgraded(t, fmt.Sprintf(`INSERT INTO endpoints SELECT gen_random_uuid(), '00000000-0000-7000-8000-000000000001',
		'https://many.example/', 'POST', 'eds', '', NULL, NULL, NULL, NULL, NULL, NULL, 'active', '', NULL, NULL, NULL, 1
		FROM generate_series(1, %d)`, many))
	seen, letters := map[string]bool{}, map[rune]bool{}
	err := s.LoadEndpoints(t.Context(), func(le *store.LoadedEndpoint) error {
		code := le.Endpoint.Code
		if !validCode(code) || seen[code] {
			t.Fatalf("code %q is not valid or not the first", code)
		}
		seen[code] = true
		for _, c := range code {
			letters[c] = true
		}
		return nil
	})
	if err != nil || len(seen) != many+1 || len(letters) != 32 {
		t.Errorf("%d codes of %d letters, %v", len(seen), len(letters), err)
	}
}
