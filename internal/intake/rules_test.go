package intake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// TestEveryRuleHoldsAtEveryDoor checks every rule for incoming events at every door, on both stores. A rule has the same
// outcome at every door; only the form of the response differs.
//
// A new door needs one entry in doors; it must keep every rule.
func TestEveryRuleHoldsAtEveryDoor(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		h := newHouse(t, o)
		for _, rule := range rules {
			t.Run(rule.name, func(t *testing.T) {
				rule.given(h)
				for _, d := range doors {
					if rule.not != nil && rule.not(d) {
						continue
					}
					t.Run(d.name, func(t *testing.T) {
						h := &house{Server: h.Server, t: t, producer: h.producer, actor: h.actor, source: h.source, keys: h.keys, seen: h.seen}
						rule.check(h, d)
					})
					h.keys += 1000 // each door has keys of its own
				}
				rule.after(h)
			})
		}
	})
}

// A rule is checked at every door that it is not excused from.
type rule struct {
	name  string
	given func(*house) // sets up the tenant
	check func(h *house, d door)
	after func(*house)
	not   func(door) bool
}

func nothing(*house) {}

// want fails unless the door's answer has the outcome. A refusal must name the field and store nothing.
func (h *house) want(d door, p post, outcome, field string) answer {
	h.t.Helper()
	a := d.send(h, p)
	if a.outcome != outcome || field != "" && !a.names(field) {
		h.t.Fatalf("type %.40q: %s (fields %q), want %s %s\n%d %s", p.Type, a.outcome, a.fields, outcome, field, a.status, a.text)
	}
	want := 0
	if outcome == "accepted" {
		want = 1
	}
	if n := h.added(); n != want {
		h.t.Fatalf("type %.40q: %s, and %d events were stored", p.Type, outcome, n)
	}
	return a
}

// tenant changes settings of the tenant.
func (h *house) tenant(settings apptest.Fields) {
	h.t.Helper()
	h.Must(apptest.Call{Method: "PATCH", Path: "/v1/tenants/" + h.Tenant.String(), Body: settings}, nil)
}

// schema puts a schema for the payloads of a type in force.
func (h *house) schema(eventType, object string) {
	h.t.Helper()
	h.Must(apptest.Call{Method: "PUT", Path: "/v1/event-types/" + eventType, Body: fmt.Sprintf(
		`{"description":"","schema":{"type":"object","required":["object"],"properties":{"object":{"type":"object",%s}}}}`, object)}, nil)
}

const needsTotal = `"required":["total"]`

var rules = []rule{
	{name: "an ordinary event is taken in", given: nothing, after: nothing, check: func(h *house, d door) {
		h.want(d, post{Type: "order.paid", Data: order("")}, "accepted", "")
		h.want(d, post{Type: "order.paid", Data: order(""), Key: h.key()}, "accepted", "")
	}},
	{name: "a key with only ingest cannot make a reserved event", given: nothing, after: nothing, check: func(h *house, d door) {
		for _, reserved := range []string{
			"webhook.dead", "webhook.delivered", "webhook.subscription.deleted", "webhook.anything", "godwit.alert.delivery_dead", "godwit.test",
			"Webhook.dead", "GODWIT.alert.delivery_dead",
		} {
			h.want(d, post{Type: reserved, Data: order("")}, "refused", "type")
			h.want(d, post{Type: reserved, Data: order(""), Key: h.key()}, "refused", "type")
		}
	}},
	{name: "types are segments joined by dots", given: nothing, after: nothing, check: func(h *house, d door) {
		for _, wrong := range []string{"order..paid", ".paid", "order paid", "order.päid", "order.*", strings.Repeat("a", 129)} {
			if wrong == "order.päid" && d.name == "relay" {
				continue // a header field carries no such text
			}
			h.want(d, post{Type: wrong, Data: order("")}, "refused", "type")
		}
	}},
	{
		name: "attributes have names and sizes", given: nothing, after: nothing,
		not: func(d door) bool { return !d.attributes },
		check: func(h *house, d door) {
			h.want(d, post{Type: "order.paid", Data: order(""), Attributes: map[string]string{"region": "eu"}}, "accepted", "")
			many := map[string]string{}
			for i := range 33 {
				many[fmt.Sprintf("a%d", i)] = "x"
			}
			h.want(d, post{Type: "order.paid", Data: order(""), Attributes: many}, "refused", "attributes")
			h.want(d, post{Type: "order.paid", Data: order(""), Attributes: map[string]string{"bad name": "x"}}, "refused", "bad name")
			h.want(d, post{Type: "order.paid", Data: order(""), Attributes: map[string]string{"region": strings.Repeat("x", 257)}}, "refused", "region")
			h.want(d, post{Type: "order.paid", Data: order(""), Attributes: map[string]string{"region": "a\nb"}}, "refused", "region")
		},
	},
	{
		name: "the tenant's schemas hold",
		given: func(h *house) {
			h.schema("order.paid", needsTotal)
			h.tenant(apptest.Fields{"event_validation": "known"})
		},
		after: func(h *house) { h.tenant(apptest.Fields{"event_validation": ""}) },
		check: func(h *house, d door) {
			h.want(d, post{Type: "order.paid", Data: order("")}, "refused", "object.total")
			h.want(d, post{Type: "order.paid", Data: order(""), Key: h.key()}, "refused", "object.total")
			h.want(d, post{Type: "order.paid", Data: order(`,"total":1`), Key: h.key()}, "accepted", "")
			h.want(d, post{Type: "order.unlisted", Data: order(""), Key: h.key()}, "accepted", "")
		},
	},
	{
		name:  "strict validation knows listed types alone",
		given: func(h *house) { h.tenant(apptest.Fields{"event_validation": "strict"}) },
		after: func(h *house) { h.tenant(apptest.Fields{"event_validation": ""}) },
		check: func(h *house, d door) {
			h.want(d, post{Type: "order.unlisted", Data: order("")}, "refused", "type")
			h.want(d, post{Type: "order.paid", Data: order(`,"total":1`)}, "accepted", "")
		},
	},
	{
		name:  "a repeat is answered before its payload is judged by today's schema",
		given: func(h *house) { h.tenant(apptest.Fields{"event_validation": "known"}) },
		after: func(h *house) { h.tenant(apptest.Fields{"event_validation": ""}) },
		check: func(h *house, d door) {
			h.schema("order.sent", `"required":["id"]`)
			first := post{Type: "order.sent", Data: order(""), Key: h.key()}
			was := h.want(d, first, "accepted", "")
			h.schema("order.sent", needsTotal)
			if again := h.want(d, first, "repeated", ""); again.id != was.id || again.id == "" {
				h.t.Errorf("the repeat names event %q, the first was %q", again.id, was.id)
			}
			h.want(d, post{Type: "order.sent", Data: order(""), Key: h.key()}, "refused", "object.total")
		},
	},
	{name: "a key stands for one payload", given: nothing, after: nothing,
		not: func(d door) bool { return d.ownKey }, // there the payload is part of the key
		check: func(h *house, d door) {
			key := h.key()
			was := h.want(d, post{Type: "order.paid", Data: order(""), Key: key}, "accepted", "")
			if again := h.want(d, post{Type: "order.paid", Data: order(""), Key: key}, "repeated", ""); again.id != was.id {
				h.t.Errorf("the repeat names event %q, the first was %q", again.id, was.id)
			}
			h.want(d, post{Type: "order.paid", Data: order(`,"total":2`), Key: key}, "refused", "")
		},
	},
	{name: "keys have a form", given: nothing, after: nothing,
		not: func(d door) bool { return d.ownKey },
		check: func(h *house, d door) {
			h.want(d, post{Type: "order.paid", Data: order(""), Key: "short"}, "refused", "")
			h.want(d, post{Type: "order.paid", Data: order(""), Key: strings.Repeat("k", 2000)}, "refused", "")
		},
	},
	{
		name:  "a tenant may require keys",
		given: func(h *house) { h.tenant(apptest.Fields{"require_idempotency_key": true}) },
		after: func(h *house) { h.tenant(apptest.Fields{"require_idempotency_key": false}) },
		not:   func(d door) bool { return d.ownKey || d.name == "relay" }, // which never go without
		check: func(h *house, d door) {
			h.want(d, post{Type: "order.paid", Data: order("")}, "refused", "")
			h.want(d, post{Type: "order.paid", Data: order(""), Key: h.key()}, "accepted", "")
		},
	},
	{name: "payloads have a size", given: nothing, after: nothing, check: func(h *house, d door) {
		h.want(d, post{Type: "order.paid", Data: large(maxPayload / 2)}, "accepted", "")
		h.want(d, post{Type: "order.paid", Data: large(maxPayload + 1)}, "refused", "")
	}},
}
