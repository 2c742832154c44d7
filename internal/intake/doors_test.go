package intake_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A house is a server with every door to its tenant's events, and a key that may only publish events.
type house struct {
	*apptest.Server
	t        *testing.T
	producer string // the key
	actor    string // its principal
	source   struct {
		Path   string `json:"path"`
		ID     string `json:"id"`
		Issued struct {
			Secret string `json:"secret"`
		} `json:"issued"`
	}
	keys int
	seen map[string]bool // events, by id
}

const maxPayload = 8 << 10

func newHouse(t *testing.T, o apptest.Options) *house {
	t.Helper()
	o.Configure = func(c *config.Config) { c.MaxBody = maxPayload }
	h := &house{Server: apptest.Start(t, o), t: t, seen: map[string]bool{}}
	h.producer = h.NewKey(h.Tenant, godwit.ScopeIngest)
	var who struct {
		Caller struct {
			Actor string `json:"actor_id"`
		} `json:"caller"`
	}
	h.Must(apptest.Call{Path: "/ids/v1/registry", Key: h.producer}, &who)
	h.actor = who.Caller.Actor
	h.Must(apptest.Call{Path: "/v1/sources", Body: apptest.Fields{
		"name": "upstream", "scheme": "bearer", "event_type": apptest.Fields{"header": "X-Type"},
	}}, &h.source)
	var service struct {
		Version string `json:"version"`
	}
	h.Must(apptest.Call{Path: "/.well-known/webhook-service"}, &service)
	h.Must(apptest.Call{
		Path: "/v1/sources/" + h.source.ID + "/acknowledgments", Body: apptest.Fields{"version": service.Version, "by": "Ada"},
	}, nil)
	return h
}

// key makes a key that no event has.
func (h *house) key() string {
	h.keys++
	return fmt.Sprintf("doors-%010d", h.keys)
}

// added counts the tenant's events that were stored since the last call. Ids of one millisecond have no order, so comparing
// with the newest id is not enough.
func (h *house) added() int {
	h.t.Helper()
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	h.Must(apptest.Call{Path: "/v1/events?limit=20"}, &list)
	n := 0
	for _, e := range list.Items {
		if !h.seen[e.ID] {
			h.seen[e.ID] = true
			n++
		}
	}
	return n
}

// A post is an event as a test brings it to a door.
type post struct {
	Type       string
	Data       string // JSON
	Key        string // of idempotency; "" sends none
	Attributes map[string]string
}

// order is a payload that every door takes.
func order(members string) string {
	return `{"object":{"id":"o_1","object":"order","created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"` + members + `}}`
}

// An answer is the result at a door, in one form for all doors.
type answer struct {
	outcome string   // accepted, repeated or refused
	id      string   // of the event
	fields  []string // that a refusal names
	status  int
	text    string
}

// names reports whether a refusal is about the field, whatever prefix the door gives it.
func (a answer) names(field string) bool {
	return slices.ContainsFunc(a.fields, func(f string) bool { return f == field || strings.HasSuffix(f, "."+field) })
}

// A door is one way for an event to come in.
type door struct {
	name string
	send func(h *house, p post) answer
	// attributes: producers set them here. Other doors derive them from the event.
	attributes bool
	// ownKey: the door derives the key of an event, and needs none.
	ownKey bool
}

var doors = []door{
	{name: "native envelope", attributes: true, send: func(h *house, p post) answer {
		return h.call("/v1/events", p.Key, envelopeOf(p), fromNative)
	}},
	{name: "native raw", attributes: true, send: func(h *house, p post) answer {
		query := url.Values{"type": {p.Type}}
		for name, value := range p.Attributes {
			query.Set("attr."+name, value)
		}
		return h.call("/v1/events?"+query.Encode(), p.Key, p.Data, fromNative)
	}},
	{name: "native batch", attributes: true, send: func(h *house, p post) answer {
		return h.call("/v1/events/batch", "", batchOf(itemOf(p)), fromBatch)
	}},
	{name: "native batch under one key", attributes: true, send: func(h *house, p post) answer {
		return h.call("/v1/events/batch", p.Key, batchOf(envelopeOf(p)), fromBatch)
	}},
	{name: "ojs", send: func(h *house, p post) answer {
		return h.call("/ojs/v1/events", p.Key, ojsOf(p, ""), fromOJS)
	}},
	{name: "ojs with id", send: func(h *house, p post) answer {
		return h.call("/ojs/v1/events", p.Key, ojsOf(p, p.Key), fromOJS)
	}},
	{name: "ojs batch", send: func(h *house, p post) answer {
		return h.call("/ojs/v1/events/batch", p.Key, batchOf(ojsOf(p, p.Key)), fromOJS)
	}},
	{name: "cybercube", send: func(h *house, p post) answer {
		return h.call("/api/v1/webhooks/events", p.Key, fmt.Sprintf(`{"type":%q,"data":%s}`, p.Type, p.Data), fromCybercube)
	}},
	{name: "relay", send: func(h *house, p post) answer {
		if p.Key == "" {
			p.Key = h.key() // an upstream always sends one
		}
		return h.send(apptest.Call{
			Path: h.source.Path, Key: h.source.Issued.Secret, Body: p.Data,
			Header: map[string]string{"X-Type": p.Type, "Idempotency-Key": quote(p.Key)},
		}, fromNative)
	}},
	{name: "command event.publish", attributes: true, ownKey: true, send: func(h *house, p post) answer {
		if p.Key == "" {
			p.Key = h.key() // two commands with the same arguments are one
		}
		now := time.Now()
		args := map[string]any{"type": p.Type, "data": json.RawMessage(p.Data), "request": p.Key}
		if p.Attributes != nil {
			args["attributes"] = p.Attributes
		}
		return h.send(apptest.Call{Path: "/ids/v1/commands", Key: h.producer, Body: map[string]any{
			"command_id": godwit.NewCommandID(now).String(), "tenant_id": h.Tenant.String(), "actor_id": h.actor,
			"intent": map[string]string{"entity": "event", "action": "publish"}, "args": args, "issued_at": now.UTC().Format(time.RFC3339),
		}}, fromCommand)
	}},
}

func quote(key string) string { return `"` + key + `"` }

func envelopeOf(p post) string {
	text, _ := json.Marshal(p.Attributes)
	if p.Attributes == nil {
		text = []byte(`{}`)
	}
	return fmt.Sprintf(`{"type":%q,"data":%s,"attributes":%s}`, p.Type, p.Data, text)
}

func itemOf(p post) string {
	item := envelopeOf(p)
	if p.Key != "" {
		item = fmt.Sprintf(`{"idempotency_key":%q,`, p.Key) + item[1:]
	}
	return item
}

func batchOf(item string) string { return `{"events":[` + item + `]}` }

func ojsOf(p post, id string) string {
	text := fmt.Sprintf(`{"type":%q,"source":"ojs://shop","data":%s}`, p.Type, p.Data)
	if id != "" {
		text = fmt.Sprintf(`{"id":%q,`, id) + text[1:]
	}
	return text
}

// call posts to an API with the key that may bring events in.
func (h *house) call(path, key, body string, read func(*apptest.Response) answer) answer {
	c := apptest.Call{Path: path, Key: h.producer, Body: body}
	if key != "" {
		c.Header = map[string]string{"Idempotency-Key": quote(key)}
	}
	return h.send(c, read)
}

func (h *house) send(c apptest.Call, read func(*apptest.Response) answer) answer {
	h.t.Helper()
	resp := h.Call(c)
	a := read(resp)
	a.status, a.text = resp.Status, string(resp.Body)
	switch {
	case resp.Status/100 == 4:
		a.outcome = "refused"
	case resp.Status/100 != 2:
		a.outcome = fmt.Sprintf("failed with %d", resp.Status)
	case a.outcome != "":
	case resp.Header.Get("Idempotency-Replayed") == "true":
		a.outcome = "repeated"
	default:
		a.outcome = "accepted"
	}
	return a
}

func decode[T any](r *apptest.Response) (v T) {
	_ = json.Unmarshal(r.Body, &v) // what cannot be read leaves an answer that no test expects
	return v
}

func fromNative(r *apptest.Response) answer {
	v := decode[struct {
		ID     string `json:"id"`
		Errors []struct {
			Field string `json:"field"`
		} `json:"errors"`
	}](r)
	a := answer{id: v.ID}
	for _, f := range v.Errors {
		a.fields = append(a.fields, f.Field)
	}
	return a
}

func fromBatch(r *apptest.Response) answer {
	a := fromNative(r)
	v := decode[struct {
		Items []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"items"`
	}](r)
	if len(v.Items) == 1 {
		a.id = v.Items[0].ID
		a.outcome = map[string]string{"replayed": "repeated", "refused": "refused"}[v.Items[0].Status]
	}
	return a
}

func fromOJS(r *apptest.Response) answer {
	v := decode[struct {
		ID     string `json:"id"`
		Events []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"events"`
		Error struct {
			Details struct {
				Fields []struct {
					Field string `json:"field"`
				} `json:"fields"`
			} `json:"details"`
		} `json:"error"`
	}](r)
	a := answer{id: v.ID}
	if len(v.Events) == 1 {
		a.id = v.Events[0].ID
		a.outcome = map[string]string{"duplicate": "repeated", "refused": "refused"}[v.Events[0].Status]
	}
	for _, f := range v.Error.Details.Fields {
		a.fields = append(a.fields, f.Field)
	}
	return a
}

func fromCybercube(r *apptest.Response) answer {
	v := decode[struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
		Error struct {
			Details struct {
				Fields map[string][]string `json:"fields"`
			} `json:"details"`
		} `json:"error"`
	}](r)
	a := answer{id: v.Data.ID}
	for name := range v.Error.Details.Fields {
		a.fields = append(a.fields, name)
	}
	return a
}

// fromCommand reads the answer of the executor: a rejection tells its fields in its detail, a refusal in errors.
func fromCommand(r *apptest.Response) answer {
	v := decode[struct {
		Detail  string `json:"detail"`
		Outcome struct {
			Detail string `json:"detail"`
			Result struct {
				ID string `json:"event_id"`
			} `json:"result"`
		} `json:"outcome"`
		Errors []struct {
			Field string `json:"field"`
		} `json:"errors"`
	}](r)
	a := answer{id: v.Outcome.Result.ID}
	for _, f := range v.Errors {
		a.fields = append(a.fields, strings.ReplaceAll(strings.TrimPrefix(f.Field, "/args/"), "/", "."))
	}
	for part := range strings.SplitSeq(v.Outcome.Detail, "; ") {
		if field, _, ok := strings.Cut(part, ": "); ok {
			a.fields = append(a.fields, field)
		}
	}
	return a
}

// large is a payload of n bytes.
func large(n int) string {
	text := order(`,"fill":""`)
	return string(bytes.Replace([]byte(text), []byte(`"fill":""`), []byte(`"fill":"`+strings.Repeat("x", n-len(text))+`"`), 1))
}
