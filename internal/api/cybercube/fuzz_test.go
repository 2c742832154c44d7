package cybercube

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// FuzzPosting: every posted body is rejected with the field named, or becomes an event that matches the standard.
func FuzzPosting(f *testing.F) {
	object := `{"id":"P","object":"project","created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"}`
	for _, seed := range []string{
		`{"type":"project.created","data":{"object":` + object + `}}`,
		`{"id":"evt_AbcdefghijklmnopqrstuvwxyZ","type":"user.subscription.upgraded","api_version":"2026-01-17","created_at":"2026-01-17T12:00:00.5+02:00","data":{"object":` + object + `},"account_id":"ACC-37WA78-6","livemode":false}`,
		`{"type":"project.updated","data":{"object":` + object + `,"previous_attributes":{"id":"Q","x":[1]}}}`,
		`{"type":"project.created","type":"a.b","data":null}`, `{"type":"project.created","data":{"object":{"id":"\u0000"}}}`,
		`{`, ``, `[]`, `null`, `{"type":1}`, "{\"type\":\"\xff\"}", `{"data":{"object":{"a":{"b":{"c":{"d":{"e":1}}}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	tenant := &godwit.Tenant{ID: godwit.NewTenantID(begin), Code: "37WA78"}
	h := &eventIngest{now: func() time.Time { return begin }, unknownTypes: true}
	f.Fuzz(func(t *testing.T, raw []byte) {
		call := &httpapi.Call{R: &http.Request{}, Body: raw, Caller: &management.Caller{Tenant: tenant, Key: &godwit.APIKey{}}}
		p, err := h.readPosting(call)
		if err != nil {
			refused := problem.From(err)
			if status, _ := (&Errors{}).classify(&http.Request{}, refused); status != http.StatusBadRequest || len(refused.Errors) == 0 {
				t.Fatalf("not a refusal that names a field: %v", err)
			}
			return
		}
		pub := event(call, p, "")
		stored := &godwit.Event{ID: godwit.NewEventID(begin), CreatedAt: begin, Format: pub.Format, SourceID: pub.SourceID, OccurredAt: pub.OccurredAt}
		pub.Compose(stored)
		if wrong := catalogue.Cybercube().Check(stored.Body); len(wrong) > 0 {
			t.Fatalf("%q became %q, which does not fit: %v", raw, stored.Body, wrong)
		}
		if !json.Valid(stored.Body) || !bytes.Contains(raw, p.data) || !bytes.Contains(stored.Body, p.data) {
			t.Fatalf("%q became %q", raw, stored.Body)
		}
		if len(pub.Attributes) > godwit.MaxAttributes || godwit.ValidEventType(pub.Type) != "" {
			t.Fatalf("event %+v", pub)
		}
		for name, value := range pub.Attributes {
			if management.ValidAttributeName(name) != "" || management.ValidAttributeValue(value) != "" {
				t.Fatalf("attribute %q=%q", name, value)
			}
		}
	})
}
