package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// standardTables lists the columns of the CYBERCUBE webhooks standard's schema (section 11.3), with their types.
var standardTables = map[string]string{
	"webhook_endpoints": `id uuid, public_id character varying(16), account_id uuid, url text, description text, events text[],
		secret_hash character varying(64), secret_hint character varying(10), status character varying(20), failure_count integer,
		last_delivery_at timestamp with time zone, last_success_at timestamp with time zone, last_failure_at timestamp with time zone,
		created_at timestamp with time zone, updated_at timestamp with time zone`,
	"webhook_events": `id character varying(30), type character varying(100), api_version character varying(20), account_id uuid,
		livemode boolean, data jsonb, created_at timestamp with time zone`,
	"webhook_deliveries": `id character varying(30), event_id character varying(30), endpoint_id uuid, attempt integer,
		status character varying(20), response_status integer, response_time_ms integer, response_body text, error_message text,
		scheduled_at timestamp with time zone, delivered_at timestamp with time zone, next_retry_at timestamp with time zone,
		created_at timestamp with time zone`,
	"webhook_dlq": `id uuid, event_id character varying(30), endpoint_id uuid, failure_reason text, attempts_summary jsonb,
		created_at timestamp with time zone, replayed_at timestamp with time zone, expires_at timestamp with time zone`,
}

func TestViewsHaveTheStandardsColumns(t *testing.T) {
	s := openAt(t, Options{})
	for view, want := range standardTables {
		columns := strings.Join(texts(t, s, `SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
			WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum`, view), ", ")
		if want = strings.Join(strings.Fields(want), " "); columns != want {
			t.Errorf("%s has\n%s\nwant\n%s", view, columns, want)
		}
	}
}

func texts(t *testing.T, q *Store, sql string, args ...any) []string {
	t.Helper()
	r, err := q.pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(r, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return list
}

// A stage is a store with one tenant and one endpoint, on which a test makes the rows that the views must show.
type stage struct {
	*load
	t        *testing.T
	now      time.Time
	owner    godwit.Tenant
	receiver godwit.Endpoint
	secret   godwit.Secret
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := openAt(t, Options{})
	st := &stage{load: newLoad(t, s), t: t, now: time.Now().UTC().Truncate(time.Millisecond)}
	st.owner = godwit.Tenant{ID: st.tenant, Code: profile.NewCode(), Name: "acme", CreatedAt: st.now}
	st.receiver = godwit.Endpoint{ID: st.endpoint, Code: profile.NewCode(), TenantID: st.tenant, URL: "https://receiver.example/hook", Method: "POST",
		Profile: "cybercube", Description: "orders", Patterns: []string{"order.*", "invoice.paid"}, Sealed: []byte("sealed-headers"),
		Status: godwit.EndpointActive, StatusAt: st.now, CreatedAt: st.now, UpdatedAt: st.now, Version: 1}
	st.secret = godwit.Secret{ID: godwit.NewSecretID(st.now), EndpointID: st.endpoint, TenantID: st.tenant, Algorithm: godwit.AlgorithmHMAC,
		Sealed: []byte("sealed-secret"), CreatedAt: st.now, NotBefore: st.now.Add(-time.Hour), Hash: strings.Repeat("c3", 32), Hint: "kZWY"}
	if err := s.CreateTenant(t.Context(), &st.owner); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateEndpoint(t.Context(), &st.receiver, &st.secret); err != nil {
		t.Fatal(err)
	}
	return st
}

// event accepts an event, due at once.
func (st *stage) event(change func(*godwit.Event)) (*godwit.Event, godwit.DeliveryID) {
	st.t.Helper()
	e := &godwit.Event{ID: mintEvent(st.now), TenantID: st.tenant, Type: "order.paid", Key: "k", ContentType: "application/json",
		Body: []byte(`{"total":42}`), CreatedAt: st.now}
	if change != nil {
		change(e)
	}
	d := store.NewDelivery{ID: mintDelivery(st.now), EndpointID: st.endpoint, Trigger: godwit.TriggerAccept}
	st.commit(st.t, &store.Batch{Now: st.now, Accepts: []store.Accept{{Events: []store.NewEvent{{Event: e, Deliveries: []store.NewDelivery{d}}}}}})
	return e, d.ID
}

// try attempts the only due delivery. A retry follows after a minute.
func (st *stage) try(status godwit.DeliveryStatus, code int, change func(*godwit.Attempt)) *godwit.Attempt {
	st.t.Helper()
	c, err := storetest.ClaimOne(st.t.Context(), st.s, store.Claim{EndpointID: st.endpoint, Epoch: st.epoch, Now: st.now, Limit: 1})
	if err != nil || len(c.Work) != 1 {
		st.t.Fatalf("claimed %+v, %v", c, err)
	}
	d := c.Work[0].Delivery
	a := &godwit.Attempt{ID: mintAttempt(st.now), DeliveryID: d.ID, TenantID: d.TenantID, EventID: d.EventID, EndpointID: d.EndpointID,
		N: d.Attempts + 1, Trigger: godwit.TriggerRetry, StartedAt: st.now, Duration: 123456 * time.Microsecond, URL: st.receiver.URL, Status: code}
	if d.Run.Attempts == 0 {
		a.Trigger, d.Run.FirstAt = d.Run.Trigger, st.now
	}
	d.Attempts, d.LastStatus, d.Status, d.UpdatedAt = d.Attempts+1, code, status, st.now.Add(a.Duration)
	d.Run.Attempts++
	a.Verdict = godwit.Verdict{Outcome: godwit.Transient, Reason: godwit.ReasonStatus, Class: godwit.ClassApplication}
	switch status {
	case godwit.DeliveryAccepted:
		a.Verdict = godwit.Verdict{Outcome: godwit.Accepted, Reason: godwit.ReasonAccepted}
	case godwit.DeliveryTerminal:
		a.Verdict.Outcome = godwit.Terminal
	case godwit.DeliveryPending:
		d.DueAt = st.now.Add(time.Minute)
		a.NextAt = d.DueAt
	}
	d.Reason = a.Verdict.Reason
	if change != nil {
		change(a)
	}
	st.commit(st.t, &store.Batch{Now: st.now, Results: []store.Result{{Delivery: d, Attempt: a, Epoch: st.epoch, LastDetail: "answered"}},
		Health: []godwit.Health{{EndpointID: st.endpoint, Streak: d.Attempts, LastFailureAt: st.now, UpdatedAt: st.now}}})
	return a
}

// rows returns the rows of a query as documents, for comparison.
func (st *stage) rows(sql string, args ...any) []map[string]any {
	st.t.Helper()
	var list []map[string]any
	for _, text := range texts(st.t, st.s, `SELECT to_jsonb(r)::text FROM (`+sql+`) AS r`, args...) {
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			st.t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// has compares some members of a row. Times are given as times.
func (st *stage) has(what string, row map[string]any, want map[string]any) {
	st.t.Helper()
	for name, value := range want {
		got := row[name]
		if at, ok := value.(time.Time); ok {
			text, _ := got.(string)
			parsed, err := time.Parse(time.RFC3339Nano, text)
			if err != nil || !parsed.Equal(at) {
				st.t.Errorf("%s: %s is %v, want %v", what, name, got, at)
			}
			continue
		}
		if fmt.Sprint(got) != fmt.Sprint(value) {
			st.t.Errorf("%s: %s is %v, want %v", what, name, got, value)
		}
	}
}

func uuidText(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func TestEndpointsView(t *testing.T) {
	trace.Covers(t, "CCW-DB-1")
	st := newStage(t)
	row := st.rows(`SELECT * FROM webhook_endpoints`)[0]
	st.has("new", row, map[string]any{
		"id": uuidText(st.endpoint), "public_id": profile.FormatCode(profile.CodeEndpoint, st.receiver.Code), "account_id": uuidText(st.tenant),
		"url": st.receiver.URL, "description": "orders", "events": []any{"order.*", "invoice.paid"}, "secret_hash": st.secret.Hash,
		"secret_hint": "kZWY", "status": "active", "failure_count": 0, "last_delivery_at": nil, "last_success_at": nil, "last_failure_at": nil,
		"created_at": st.now, "updated_at": st.now,
	})
	st.event(nil)
	st.try(godwit.DeliveryPending, 500, nil)
	success := st.now.Add(-time.Minute)
	st.commit(t, &store.Batch{Now: st.now, Health: []godwit.Health{{EndpointID: st.endpoint, Streak: 3, LastFailureAt: st.now, LastAcceptedAt: success, UpdatedAt: st.now}}})

	// The view shows the newest secret in force, not one that has yet to begin.
	rotated, coming := st.secret, st.secret
	rotated.ID, rotated.Hash, rotated.Hint = godwit.NewSecretID(st.now.Add(time.Second)), strings.Repeat("ab", 32), "9x_Q"
	coming.ID, coming.NotBefore, coming.Hint = godwit.NewSecretID(st.now.Add(time.Minute)), st.now.Add(time.Hour), "late"
	for _, secret := range []*godwit.Secret{&rotated, &coming} {
		if err := storetest.IssueSecret(t.Context(), st.s, secret, store.Expiry{At: st.now.Add(24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, status := range []godwit.EndpointStatus{godwit.EndpointPaused, godwit.EndpointDisabled} {
		st.receiver.Version++
		st.receiver.Status, st.receiver.UpdatedAt = status, st.now.Add(time.Second)
		if err := st.s.UpdateEndpoint(t.Context(), &st.receiver); err != nil {
			t.Fatal(err)
		}
		st.has(string(status), st.rows(`SELECT * FROM webhook_endpoints`)[0], map[string]any{
			"status": status, "failure_count": 3, "last_delivery_at": st.now, "last_failure_at": st.now, "last_success_at": success,
			"secret_hash": rotated.Hash, "secret_hint": "9x_Q", "updated_at": st.receiver.UpdatedAt,
		})
	}
	if _, err := storetest.RemoveTenant(t.Context(), st.s, st.tenant, st.now); err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"webhook_endpoints", "webhook_deliveries"} {
		if rows := st.rows(`SELECT * FROM ` + view); len(rows) != 0 {
			t.Errorf("%s has %v after its account was deleted", view, rows)
		}
	}
}

func TestEventsView(t *testing.T) {
	trace.Covers(t, "CCW-DB-3")
	st := newStage(t)
	happened := st.now.Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(*godwit.Event)
		want   map[string]any
		data   string
	}{
		"told in the standard": {func(e *godwit.Event) {
			e.Format, e.SourceID, e.OccurredAt, e.Type = godwit.FormatCybercube, "evt_01HZTHEIRSTHEIRSTHEIRSTHE", happened, "project.created"
			e.Body = []byte(`{"id":"evt_01HZTHEIRSTHEIRSTHEIRSTHE","api_version":"2025-12-01","livemode":false,"data":{"object":{"id":"PRJ-1","name":"a\u0000b"}}}`)
		}, map[string]any{"id": "evt_01HZTHEIRSTHEIRSTHEIRSTHE", "type": "project.created", "api_version": "2025-12-01", "livemode": false,
			"account_id": uuidText(st.tenant), "created_at": happened}, `{"object":{"id":"PRJ-1","name":"a` + "\uFFFD" + `b"}}`},
		"an object": {nil, map[string]any{"type": "order.paid", "api_version": "2026-01-17", "livemode": true, "created_at": st.now},
			`{"object":{"id":"$ID","object":"order","total":42}}`},
		"an object with its own id": {func(e *godwit.Event) { e.Body = []byte(`{"id":7,"object":"parcel"}`) }, nil, `{"object":{"id":7,"object":"parcel"}}`},
		"a job": {func(e *godwit.Event) {
			e.Format, e.Body = godwit.FormatOJS, []byte(`{"type":"job.completed","subject":"job-1","data":{"queue":"mail"}}`)
		}, nil, `{"object":{"id":"job-1","object":"order","queue":"mail"}}`},
		"a number":     {func(e *godwit.Event) { e.Body = []byte(`12.50`) }, nil, `{"object":{"id":"$ID","object":"order","value":12.50}}`},
		"no JSON":      {func(e *godwit.Event) { e.Body, e.ContentType = []byte{0xff, 0}, "image/x" }, nil, `{"object":{"id":"$ID","object":"order","content_type":"image/x","base64":"/wA="}}`},
		"broken JSON":  {func(e *godwit.Event) { e.Body = []byte(`{"a":`) }, nil, `{"object":{"id":"$ID","object":"order","content_type":"application/json","base64":"eyJhIjo="}}`},
		"a test event": {func(e *godwit.Event) { e.Type = "webhook.test" }, map[string]any{"livemode": false}, `{"object":{"id":"$ID","object":"webhook","total":42}}`},
	} {
		t.Run(name, func(t *testing.T) {
			st := *st
			st.t = t
			e, _ := st.event(c.change)
			id := "evt_" + e.ID.Base32()
			if e.SourceID != "" {
				id = e.SourceID
			}
			rows := st.rows(`SELECT * FROM webhook_events WHERE id = $1`, id)
			if len(rows) != 1 {
				t.Fatalf("%d rows have the id %s", len(rows), id)
			}
			st.has("row", rows[0], c.want)
			var data any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(c.data, "$ID", id)), &data); err != nil {
				t.Fatal(err)
			}
			st.has("row", rows[0], map[string]any{"data": data})
			if found := st.rows(`SELECT * FROM webhook_event($1, $2)`, [16]byte(st.tenant), id); fmt.Sprint(found) != fmt.Sprint(rows) {
				t.Errorf("found by its id: %v, want %v", found, rows)
			}
			stored, err := st.s.Event(t.Context(), st.tenant, e.ID) // the event that a replay sends
			if err != nil || string(stored.Body) != string(e.Body) {
				t.Errorf("body is %q, %v", stored.Body, err)
			}
		})
	}
	if found := st.rows(`SELECT * FROM webhook_event($1, 'evt_none')`, [16]byte(st.tenant)); len(found) != 0 {
		t.Errorf("found %v by an id that is none", found)
	}
}

func TestDeliveriesView(t *testing.T) {
	trace.Covers(t, "CCW-DB-5", "CCW-DB-8")
	st := newStage(t)
	e, id := st.event(nil)
	const list = `SELECT * FROM webhook_deliveries ORDER BY created_at, status = 'pending'`
	st.has("before it is tried", st.rows(list)[0], map[string]any{
		"id": "wh_" + fmt.Sprintf("%x", id[4:]), "event_id": "evt_" + e.ID.Base32(), "endpoint_id": uuidText(st.endpoint), "attempt": 1,
		"status": "pending", "response_status": nil, "scheduled_at": st.now, "delivered_at": nil, "next_retry_at": nil, "created_at": st.now,
	})
	began := st.now
	long := strings.Repeat("é", godwit.MaxBodyExcerpt)
	a := st.try(godwit.DeliveryPending, 500, func(a *godwit.Attempt) { a.Trace.Body = "no\x00" + long })
	rows := st.rows(list)
	st.has("failed", rows[0], map[string]any{
		"id": "wh_" + fmt.Sprintf("%x", a.ID[4:]), "event_id": "evt_" + e.ID.Base32(), "attempt": 1, "status": "failed", "response_status": 500,
		"response_time_ms": 123, "response_body": ("no\uFFFD" + long)[:3+3+2*(4096-3)-1], "error_message": "HTTP 500", "scheduled_at": began,
		"delivered_at": nil, "next_retry_at": began.Add(time.Minute), "created_at": began,
	})
	st.has("the retry", rows[1], map[string]any{"attempt": 2, "status": "pending", "scheduled_at": began.Add(time.Minute), "delivered_at": nil})
	if len(rows) != 2 {
		t.Errorf("%d rows, want the attempt and the one to come", len(rows))
	}
	st.now = began.Add(61 * time.Second)
	st.try(godwit.DeliveryExhausted, 0, func(a *godwit.Attempt) {
		a.Verdict.Reason, a.Verdict.Class, a.Trace.Detail = "timeout", godwit.ClassTransport, "no answer in 30 s"
	})
	rows = st.rows(list)
	st.has("a failure that was followed", rows[0], map[string]any{"attempt": 1, "status": "failed", "next_retry_at": nil})
	st.has("the last one", rows[1], map[string]any{"attempt": 2, "status": "exhausted", "response_status": nil, "next_retry_at": nil,
		"error_message": "timeout: no answer in 30 s", "scheduled_at": began.Add(time.Minute), "created_at": st.now, "delivered_at": nil})
	if len(rows) != 2 {
		t.Errorf("%d rows, want none to come", len(rows))
	}

	st.now = st.now.Add(time.Hour)
	replay := store.Requeue{TenantID: st.tenant, Deliveries: []godwit.DeliveryID{id}, Trigger: godwit.TriggerReplay, Now: st.now}
	if _, err := st.s.Requeue(t.Context(), replay); err != nil {
		t.Fatal(err)
	}
	rows = st.rows(list)
	st.has("before the replay", rows[1], map[string]any{"attempt": 2, "status": "exhausted", "next_retry_at": nil})
	st.has("the replay", rows[2], map[string]any{"attempt": 1, "status": "pending", "scheduled_at": st.now})
	st.try(godwit.DeliveryAccepted, 204, nil)
	rows = st.rows(list)
	st.has("an attempt of the earlier run", rows[1], map[string]any{"attempt": 2, "status": "exhausted"})
	st.has("the success", rows[2], map[string]any{"attempt": 1, "status": "success", "response_status": 204, "error_message": nil,
		"delivered_at": st.now.Add(123456 * time.Microsecond), "next_retry_at": nil, "created_at": st.now})
	if len(rows) != 3 {
		t.Errorf("%d rows, want 3", len(rows))
	}
	found := st.rows(`SELECT * FROM webhook_event_deliveries($1, $2) ORDER BY created_at`, [16]byte(st.tenant), "evt_"+e.ID.Base32())
	if fmt.Sprint(found) != fmt.Sprint(rows) {
		t.Errorf("found by the event's id: %v, want %v", found, rows)
	}
	if rows := st.rows(`SELECT * FROM webhook_deliveries WHERE status NOT IN ('pending', 'success', 'failed', 'exhausted')`); len(rows) != 0 {
		t.Errorf("other states: %v", rows)
	}
}

func TestDeadLettersView(t *testing.T) {
	trace.Covers(t, "CCW-DB-7", "CCW-DLQ-8", "CCW-DLQ-9")
	st := newStage(t)
	e, id := st.event(func(e *godwit.Event) { e.Format, e.SourceID = godwit.FormatCybercube, "evt_theirs" })
	var tried []*godwit.Attempt
	for range 6 {
		tried = append(tried, st.try(godwit.DeliveryPending, 500, nil))
		st.now = st.now.Add(time.Minute)
	}
	tried = append(tried, st.try(godwit.DeliveryExhausted, 503, nil))
	died := st.now
	const list = `SELECT * FROM webhook_dlq ORDER BY created_at`
	first := st.rows(list)[0]
	st.has("exhausted", first, map[string]any{"event_id": e.SourceID, "endpoint_id": uuidText(st.endpoint),
		"failure_reason": "HTTP 503 after 7 attempts", "created_at": died, "replayed_at": nil, "expires_at": died.Add(30 * 24 * time.Hour)})
	summary := first["attempts_summary"].([]any)
	if len(summary) != 7 {
		t.Fatalf("summary has %d entries, want 7: %v", len(summary), summary)
	}
	for i, a := range tried {
		st.has("summary", summary[i].(map[string]any), map[string]any{"attempt": i + 1, "delivery_id": "wh_" + fmt.Sprintf("%x", a.ID[4:]),
			"at": a.StartedAt, "response_status": a.Status, "response_time_ms": 123, "error": fmt.Sprint("HTTP ", a.Status)})
	}
	st.now = st.now.Add(time.Hour)
	if _, err := st.s.Requeue(t.Context(), store.Requeue{TenantID: st.tenant, Deliveries: []godwit.DeliveryID{id}, Trigger: godwit.TriggerReplay, Now: st.now}); err != nil {
		t.Fatal(err)
	}
	st.has("replayed", st.rows(list)[0], map[string]any{"id": first["id"], "replayed_at": st.now, "failure_reason": first["failure_reason"],
		"attempts_summary": first["attempts_summary"]})
	st.try(godwit.DeliveryTerminal, 404, nil)
	rows := st.rows(list)
	if len(rows) != 2 || rows[0]["id"] != first["id"] || rows[1]["id"] == first["id"] {
		t.Fatalf("dead letters are %v", rows)
	}
	st.has("dead again", rows[1], map[string]any{"failure_reason": "HTTP 404 (not retryable)", "replayed_at": nil})
	if summary := rows[1]["attempts_summary"].([]any); len(summary) != 1 || summary[0].(map[string]any)["attempt"] != 1.0 {
		t.Errorf("summary of the second run is %v", summary)
	}

	// A dead letter outlives its event, attempts and endpoint; the sweep removes it by its own age.
	if _, err := st.s.pool.Exec(t.Context(), `DELETE FROM attempts`); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.RemoveTenant(t.Context(), st.s, st.tenant, st.now); err != nil {
		t.Fatal(err)
	}
	st.has("without its attempts", st.rows(list)[0], map[string]any{"failure_reason": "HTTP 503 after 7 attempts", "attempts_summary": []any{}})
	for _, c := range []struct {
		at   time.Time
		left int
	}{{died.Add(30*24*time.Hour - time.Second), 2}, {died.Add(30*24*time.Hour + time.Second), 1}} {
		sweepAll(t, st.s, store.Sweep{Now: c.at, DeadLettersBefore: c.at.Add(-30 * 24 * time.Hour), Limit: 10})
		if rows := st.rows(list); len(rows) != c.left {
			t.Errorf("%d dead letters at %v, want %d", len(rows), c.at, c.left)
		}
	}
}

// A role that may read only the views can read neither secrets nor tables, and can write nothing.
func TestViewsAreReadOnlyAndHoldNoSecret(t *testing.T) {
	st := newStage(t)
	st.event(nil)
	st.try(godwit.DeliveryTerminal, 500, nil)
	ctx := t.Context()
	conn, err := st.s.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	role := "reader_" + strings.ToLower(profile.NewCode())
	exec := func(sql string) error {
		_, err := conn.Exec(ctx, sql)
		return err
	}
	for _, sql := range []string{`CREATE ROLE ` + role, `GRANT SELECT ON webhook_endpoints, webhook_events, webhook_deliveries, webhook_dlq TO ` + role} {
		if err := exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	defer conn.Exec(ctx, `RESET ROLE; DROP OWNED BY `+role+`; DROP ROLE `+role)
	for view := range standardTables {
		for _, sql := range []string{`INSERT INTO ` + view + ` (id) SELECT id FROM ` + view, `UPDATE ` + view + ` SET id = id`, `DELETE FROM ` + view} {
			if err := exec(sql); sqlState(err) != "0A000" || !strings.Contains(err.Error(), view+" is a view to read, not to write: use the API") {
				t.Errorf("%s gave %v", sql, err)
			}
		}
	}
	if err := exec(`SET ROLE ` + role); err != nil {
		t.Fatal(err)
	}
	for view := range standardTables {
		r, err := conn.Query(ctx, `SELECT to_jsonb(v)::text FROM `+view+` AS v`)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(r, pgx.RowTo[string])
		if err != nil || len(list) != 1 {
			t.Errorf("a reader of %s sees %v, %v", view, list, err)
		}
		if text := strings.Join(list, ""); strings.Contains(text, "sealed") || strings.Contains(text, fmt.Sprintf("%x", "sealed")) {
			t.Errorf("%s shows what is sealed: %s", view, text)
		}
	}
	for _, table := range []string{"endpoints", "endpoint_secrets", "events", "api_keys"} {
		if err := exec(`SELECT FROM ` + table); sqlState(err) != "42501" {
			t.Errorf("a reader of the views reads %s: %v", table, err)
		}
	}
}

// population makes the small tables large, so that the planner has a reason to use an index.
const population = `
	INSERT INTO endpoints (id, tenant_id, url, method, profile, description, status, status_reason, version)
		SELECT gen_random_uuid(), gen_random_uuid(), '', 'POST', 'eds', '', 'active', '', 1 FROM generate_series(1, 5000);
	UPDATE pending_deliveries SET attempts = 1, run_attempts = 1, due_at = now() + random() * interval '30 days'
		WHERE id IN (SELECT id FROM pending_deliveries LIMIT 5000);
	INSERT INTO dead_letters (` + deliveryFields + `, dead_at, last_detail, event_created_at, event_type, event_key, event_content_type, event_body)
		SELECT ` + deliveryFields + `, now() - random() * interval '30 days', '', created_at, '', '', '', '' FROM deliveries LIMIT 5000;
	VACUUM ANALYZE`

// Each index of the standard has a counterpart that the planner uses. pending_deliveries is usually small: it may be scanned.
func TestViewsAreServedByIndexes(t *testing.T) {
	st := newStage(t)
	l := crowd(t, st.s, 50_000)
	st.epoch = l.epoch // it has acquired all leases again
	st.event(func(e *godwit.Event) { e.Type = "order.rare" })
	st.try(godwit.DeliveryPending, 500, nil)
	e, _ := st.event(nil)
	for sql := range strings.SplitSeq(population, ";") {
		if _, err := st.s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ignore := tiny(t, st.s)
	ignore["pending_deliveries"] = true
	tenant, endpoint, soon := [16]byte(st.tenant), [16]byte(st.endpoint), st.now.Add(time.Minute)
	for _, c := range []struct {
		row, sql string
		args     []any
		index    string
	}{
		{"CCW-DB-2", `SELECT * FROM webhook_endpoints WHERE account_id = $1`, []any{tenant}, "endpoints_by_tenant"},
		{"CCW-DB-2", `SELECT * FROM webhook_endpoints WHERE status = 'disabled'`, nil, "endpoints_by_status"},
		{"CCW-DB-4", `SELECT id FROM webhook_events WHERE account_id = $1 AND created_at >= $2 ORDER BY created_at DESC`,
			[]any{[16]byte(l.tenant), soon}, "_coalesce_type_idx"},
		{"CCW-DB-4", `SELECT id FROM webhook_events WHERE account_id = $1 ORDER BY created_at DESC`, []any{tenant}, "_pkey"},
		{"CCW-DB-4", `SELECT id FROM webhook_events WHERE type = 'order.rare'`, nil, "_coalesce_type_idx"},
		{"CCW-DB-6", `SELECT * FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY created_at DESC`, []any{endpoint}, "_endpoint_id_id_idx"},
		{"CCW-DB-6", `SELECT * FROM webhook_deliveries WHERE status = 'failed' AND next_retry_at <= $1 ORDER BY next_retry_at`, []any{soon},
			"pending_deliveries_retry"},
		{"CCW-DB-6", `SELECT * FROM webhook_event_deliveries($1, $2)`, []any{tenant, "evt_" + e.ID.Base32()}, "_pkey"},
		{"CCW-DB-7", `SELECT * FROM webhook_dlq WHERE endpoint_id = $1`, []any{endpoint}, "dead_letters_by_endpoint"},
		{"CCW-DB-7", `SELECT * FROM webhook_dlq WHERE expires_at < $1`, []any{soon}, "dead_letters_by_end"},
	} {
		t.Run(c.sql, func(t *testing.T) {
			trace.Covers(t, c.row)
			plan := explain(t, st.s.pool, `EXPLAIN (FORMAT JSON) `+c.sql, c.args...)
			if found := plan.scans(ignore); len(found) > 0 {
				t.Errorf("reads from end to end: %v", found)
			}
			if used := plan.indexes(); !slices.ContainsFunc(used, func(name string) bool { return strings.Contains(name, c.index) }) {
				t.Errorf("uses %v, want %s", used, c.index)
			}
		})
	}
}
