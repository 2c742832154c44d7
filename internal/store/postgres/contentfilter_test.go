package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A content filter is refused while a node of an older release is alive, and then keeps such programs from starting.
func TestContentFilterKeepsOlderProgramsOut(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	url := newDatabase(t, Options{})
	s := openURL(t, url)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var own int
	if err := conn.QueryRow(ctx, `SELECT version FROM schema_migrations WHERE name LIKE '%content_filters'`).Scan(&own); err != nil {
		t.Fatal(err)
	}
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	usable := func(program int) bool {
		found, err := readSchema(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		return found.check(program) == nil
	}
	if _, err := conn.Exec(ctx, `INSERT INTO nodes (name, instance, holder, claimed_at, seen_at, schema_version, lease_until)
		VALUES ('old', 'x', 'x', now(), now(), $1, now() + interval '1 hour')`, own-1); err != nil {
		t.Fatal(err)
	}
	create := func(content godwit.ContentFilter) error {
		return s.CreateEndpoint(ctx, &godwit.Endpoint{
			ID: godwit.NewEndpointID(now), TenantID: godwit.NewTenantID(now), URL: "https://receiver.example", Method: "POST", Profile: "eds",
			Status: godwit.EndpointActive, Content: content, CreatedAt: now, UpdatedAt: now, StatusAt: now, Version: 1,
		}, nil)
	}
	content := godwit.ContentFilter{"type": []byte(`"order.paid"`)}
	if err := create(content); !errors.Is(err, store.ErrOlderNodes) {
		t.Errorf("beside an old node: %v", err)
	}
	if err := create(nil); err != nil || !usable(own-1) {
		t.Errorf("without a filter: %v, and an old program may start: %v", err, usable(own-1))
	}
	if _, err := conn.Exec(ctx, `UPDATE nodes SET lease_until = now() - interval '1 hour', seen_at = now() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	if err := create(content); err != nil || usable(own-1) || !usable(own) || !usable(len(list)) {
		t.Errorf("after the old node has gone: %v; an old program may start: %v", err, usable(own-1))
	}
}
