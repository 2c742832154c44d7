package ojs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzEnvelope: every accepted event is a complete envelope that ends with the producer's own bytes.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"type":"a.b","source":"ojs://s","data":{}}`,
		`{"specversion":"1.0","id":"x","type":"job.completed","source":"ojs://s/w","time":"2026-02-15T22:00:00Z","subject":"j","data":{"queue":"q","job_type":"t","result":{}}}`,
		` { "type" : "a" , "source":"urn:x", "data" : { "queue":"\ud800" } } `,
		`{"\u0074ype":"a","source":"ojs://s","data":{"queue":null}}`,
		`{"id":null,"type":"a","source":"ojs://s","data":{}}`, `{}`, `[]`, `null`, `{"type":1}`, `{"a":1,"a":2}`, "{\"type\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw []byte) {
		env, wrong := readEnvelope(raw, "application/json", now)
		if (env == nil) == (wrong == nil) {
			t.Fatalf("taken %v, wrong %v", env, wrong)
		}
		if env == nil {
			return
		}
		event := env.asEvent(now)
		event.OccurredAt = cmp.Or(env.event.OccurredAt, event.OccurredAt)
		body := event.Body
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("not JSON: %q", body)
		}
		own := bytes.TrimSpace(raw)
		if !bytes.HasSuffix(body, own[1:]) {
			t.Fatalf("changed: %q from %q", body, raw)
		}
		var got struct {
			SpecVersion, ID, Type, Source, Time string
			Data                                map[string]json.RawMessage
		}
		if err := json.Unmarshal(body, &got); err != nil || got.Data == nil {
			t.Fatalf("%v: %q", err, body)
		}
		if env.event.Type == "" || env.source == "" || event.OccurredAt.IsZero() {
			t.Fatalf("%+v", env)
		}
		if env.id != env.event.SourceID {
			t.Fatalf("id of %+v", env)
		}
	})
}

// FuzzSubscription: no request makes the reader panic.
func FuzzSubscription(f *testing.F) {
	for _, seed := range []string{
		`{"url":"https://a","events":["*"],"active":true,"secret":"0123456789abcdef","filter":{"queues":["a"],"job_types":[]},"metadata":{"a":1},"timeout_seconds":5,"headers":{"A":"b"}}`,
		`{"url":null,"events":null,"active":null,"secret":null,"filter":null,"metadata":null,"timeout_seconds":null,"headers":null}`,
		`{"filter":{"queues":null,"x":1}}`, `{"events":[null]}`, `{`, ``, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w, _, err := readSubscriptionRequest(body)
		if err != nil || w.err() != nil {
			return
		}
		n := newEndpoint(w)
		if w.secret != "" && utf8.RuneCountInString(w.secret) < minSecret || n.Profile != profileName {
			t.Fatalf("%+v", w)
		}
		for name, values := range n.Filter {
			if len(values) == 0 {
				t.Fatalf("filter %s lets nothing through", name)
			}
		}
	})
}

// FuzzRedact removes every secret and nothing else.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","secret":"whsec_x","subscription":{"id":"a","secret":"whsec_x"}}`, `{"secret":1,"new_secret":2}`, `{}`, `[]`, `x`,
		`{"subscription":{"subscription":{"secret":"x"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var was, is map[string]json.RawMessage
		if json.Unmarshal(body, &was) != nil || was == nil {
			return
		}
		if err := json.Unmarshal(Redact(body), &is); err != nil {
			t.Fatalf("%v: %q", err, Redact(body))
		}
		for name := range was {
			_, left := is[name]
			if secret := name == "secret" || name == "new_secret"; left == secret {
				t.Fatalf("%q in %q", name, Redact(body))
			}
		}
	})
}
