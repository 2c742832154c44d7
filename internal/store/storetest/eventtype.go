package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var eventTypeCases = []testCase{
	{"put, read, replace", eventTypeMembers},
	{"list by name", eventTypeList},
	{"delete", eventTypeDelete},
}

func makeEventType(f *fixture, name string) *godwit.EventType {
	return &godwit.EventType{TenantID: f.tenant, Name: name, CreatedAt: f.now, UpdatedAt: f.now}
}

func eventTypeMembers(t *testing.T, f *fixture) {
	bare := makeEventType(f, "order.created")
	f.must(f.s.PutEventType(f.ctx, bare))
	same(t, "bare", got(f.s.EventType(f.ctx, f.tenant, "order.created"))(t), bare)

	first := f.now
	full := makeEventType(f, "order.created")
	full.Description, full.Deprecated = "An order <came> in & \u2603", true
	full.Example = json.RawMessage("{\"id\": 12345678901234567890,\n \"total\": 1.10, \"a\": \"<&>\"}")
	full.Schemas = []godwit.EventSchema{
		{Version: 1, Schema: json.RawMessage(`{"type":"object","required":["id"],"title":"<&>"}`), CreatedAt: f.now},
		{Version: 2, Schema: json.RawMessage(`true`), CreatedAt: f.tick(time.Hour)},
	}
	full.CreatedAt, full.UpdatedAt = f.now, f.now
	f.is(f.s.PutEventType(f.ctx, full), store.ErrConflict) // there is one of this name
	full.Version = bare.Version
	f.must(f.s.PutEventType(f.ctx, full))
	full.CreatedAt = first
	same(t, "replaced", got(f.s.EventType(f.ctx, f.tenant, "order.created"))(t), full)

	bare.UpdatedAt = f.tick(time.Hour)
	f.is(f.s.PutEventType(f.ctx, bare), store.ErrConflict) // it was version 1, and is 2 now
	same(t, "version", full.Version, int64(2))
	bare.Version = full.Version
	f.must(f.s.PutEventType(f.ctx, bare))
	same(t, "version", bare.Version, int64(3))
	gone := makeEventType(f, "order.gone")
	gone.Version = 1
	f.is(f.s.PutEventType(f.ctx, gone), store.ErrConflict)
	same(t, "with everything taken away", got(f.s.EventType(f.ctx, f.tenant, "order.created"))(t), bare)

	for _, name := range []string{"order", "order.created.more", "ORDER.CREATED", ""} {
		_, err := f.s.EventType(f.ctx, f.tenant, name)
		f.is(err, store.ErrNotFound)
	}
}

func eventTypeList(t *testing.T, f *fixture) {
	// In byte order, independent of the locale.
	names := []string{"Order.paid", "order", "order-x.a", "order.Paid", "order.created", "order.paid", "order_x"}
	var want []godwit.EventType
	for i := range names {
		e := makeEventType(f, names[(i*3)%len(names)])
		f.must(f.s.PutEventType(f.ctx, e))
	}
	for _, name := range names {
		e := makeEventType(f, name)
		e.Version = 1
		want = append(want, *e)
	}
	mine := f.tenant
	f.tenant = f.newTenant()
	f.must(f.s.PutEventType(f.ctx, makeEventType(f, "order.created")))

	var found []godwit.EventType
	for after := ""; ; after = found[len(found)-1].Name {
		page := got(f.s.ListEventTypes(f.ctx, mine, after, 3))(t)
		found = append(found, page...)
		if len(page) < 3 {
			break
		}
	}
	same(t, "event types", found, want)
	if list := got(f.s.ListEventTypes(f.ctx, f.tenant, "order.created", 3))(t); len(list) != 0 {
		t.Errorf("after the last one there is %v", list)
	}
}

func eventTypeDelete(t *testing.T, f *fixture) {
	f.must(f.s.PutEventType(f.ctx, makeEventType(f, "order.created")))
	f.must(f.s.PutEventType(f.ctx, makeEventType(f, "order.paid")))
	stranger := f.newTenant()
	_, err := f.s.EventType(f.ctx, stranger, "order.created")
	f.is(err, store.ErrNotFound)
	f.is(f.s.DeleteEventType(f.ctx, stranger, "order.created", 0), store.ErrNotFound)
	f.is(f.s.DeleteEventType(f.ctx, f.tenant, "order.created", 9), store.ErrConflict)
	f.must(f.s.DeleteEventType(f.ctx, f.tenant, "order.created", 0))
	_, err = f.s.EventType(f.ctx, f.tenant, "order.created")
	f.is(err, store.ErrNotFound)
	f.is(f.s.DeleteEventType(f.ctx, f.tenant, "order.created", 0), store.ErrNotFound)
	got(f.s.EventType(f.ctx, f.tenant, "order.paid"))(t)
	again := makeEventType(f, "order.created")
	again.CreatedAt = f.tick(time.Hour)
	f.must(f.s.PutEventType(f.ctx, again))
	same(t, "made again", got(f.s.EventType(f.ctx, f.tenant, "order.created"))(t), again)
}
