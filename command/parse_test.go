package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// example is an envelope with all members.
func example() *Envelope {
	return &Envelope{
		CommandID: "cmd_01936f5e-7c1a-7b3c-9d2e-4f5a6b7c8d9e", TenantID: "t1", ActorID: "a1", EffectiveActorID: "a2",
		Intent: Intent{Entity: "invoice", Action: "refund", Target: "INV-1"},
		Args:   json.RawMessage(`{"amount":500,"currency":"USD"}`), Kind: "mutation", Options: json.RawMessage(`{"notify":true}`),
		IssuedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), MessageID: "m1", Channel: "web", Nonce: "n1",
	}
}

func written(t testing.TB, e *Envelope) []byte {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestParseEnvelopeTakesAllMembers(t *testing.T) {
	want := example()
	want.Key = strings.Repeat("0", 64)
	text := written(t, want)
	got, err := ParseEnvelope(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	clear(text)
	if string(got.Args) != string(want.Args) || string(got.Options) != string(want.Options) {
		t.Error("the envelope shares its memory with the body")
	}
}

func TestMissingKeyInput(t *testing.T) {
	command := registered(t, declared(I1))
	for field, omit := range map[string]func(*Envelope){
		"/tenant_id":     func(e *Envelope) { e.TenantID = "" },
		"/actor_id":      func(e *Envelope) { e.ActorID = "" },
		"/intent/entity": func(e *Envelope) { e.Intent.Entity = "" },
		"/intent/action": func(e *Envelope) { e.Intent.Action = "" },
	} {
		e := example()
		omit(e)
		_, err := ParseEnvelope(written(t, e))
		refusal(t, err, Malformed, field)
		_, err = command.Derive(e)
		refusal(t, err, Malformed, field)
	}
	derive := func(change func(*Envelope)) string {
		e := example()
		change(e)
		d, err := command.Derive(e)
		if err != nil {
			t.Fatal(err)
		}
		in, err := command.inputs(e, d)
		if err != nil {
			t.Fatal(err)
		}
		return string(in.object("", ""))
	}
	if text := derive(func(e *Envelope) { e.Intent.Target, e.Args = "", nil }); !strings.Contains(text, `"target":null`) || !strings.Contains(text, `"args":{}`) {
		t.Errorf("key inputs without target and args: %s", text)
	}
}

func TestEnvelopeBounds(t *testing.T) {
	pad := func(n int) []byte {
		e := example()
		e.Args = nil
		text := written(t, e)
		return append(text, bytes.Repeat([]byte(" "), n-len(text))...)
	}
	if _, err := ParseEnvelope(pad(MaxEnvelope)); err != nil {
		t.Errorf("%d bytes: %v", MaxEnvelope, err)
	}
	_, err := ParseEnvelope(pad(MaxEnvelope + 1))
	refusal(t, err, Malformed, "")
	_, err = ParseEnvelope([]byte("{\"tenant_id\":\"\xff\"}"))
	refusal(t, err, Malformed, "")
	// Far deeper than any stack of the program may grow.
	_, err = ParseEnvelope([]byte(strings.Repeat("[", MaxEnvelope/2) + strings.Repeat("]", MaxEnvelope/2)))
	refusal(t, err, Malformed, "")
	_, err = ParseEnvelope([]byte(`{"args":{"` + strings.Repeat("n", 5000) + `":1e999}}`))
	var r *Refusal
	if !errors.As(err, &r) || len(r.Field) > 200 || len(r.Detail) > 500 {
		t.Errorf("a long name is repeated: %v", err)
	}
}

func TestEnvelopeMadeByCode(t *testing.T) {
	command := registered(t, declared(I1))
	for _, c := range []struct {
		name, field string
		change      func(*Envelope)
	}{
		{"an actor in two spellings", "/actor_id", func(e *Envelope) { e.ActorID = "e\u0301" }},
		{"a tenant that is not UTF-8", "/tenant_id", func(e *Envelope) { e.TenantID = "\xff" }},
		{"no time", "/issued_at", func(e *Envelope) { e.IssuedAt = time.Time{} }},
		{"a year that RFC 3339 does not have", "/issued_at", func(e *Envelope) { e.IssuedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"args that are a list", "/args", func(e *Envelope) { e.Args = json.RawMessage(`[]`) }},
		{"args that are no JSON", "/args", func(e *Envelope) { e.Args = json.RawMessage(`{`) }},
		{"args with a member twice", "/args/a", func(e *Envelope) { e.Args = json.RawMessage(`{"a":1,"a":2}`) }},
		{"large args", "/args", func(e *Envelope) { e.Args = make([]byte, MaxEnvelope+1) }},
		{"options that are null", "/options", func(e *Envelope) { e.Options = json.RawMessage(`null`) }},
		{"options with a number that is rounded", "/options/n", func(e *Envelope) { e.Options = json.RawMessage(`{"n":9007199254740993}`) }},
		{"large options", "/options", func(e *Envelope) { e.Options = make([]byte, MaxEnvelope+1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := example()
			c.change(e)
			_, err := command.Derive(e)
			refusal(t, err, Malformed, c.field)
		})
	}
}

func FuzzParseEnvelope(f *testing.F) {
	for _, v := range readVectors(f).Keys {
		f.Add([]byte(v.Envelope))
	}
	for _, v := range readVectors(f).Refused {
		f.Add([]byte(v.Envelope))
	}
	f.Add(written(f, example()))
	d := declared(I1)
	d.Args = json.RawMessage(`{"properties":{"amount":{"default":1},"tags":{"x-set":true,"items":{"x-fold":"case space"}},"at":{"x-ephemeral":true}}}`)
	command := registered(f, d)
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := ParseEnvelope(body)
		if err != nil {
			var r *Refusal
			if !errors.As(err, &r) || r.Code != Malformed || r.Detail == "" {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		again, err := ParseEnvelope(written(t, e))
		if err != nil {
			t.Fatalf("%q: written and read again: %v", body, err)
		}
		e.Key, again.Key = "", ""
		first, err := command.Derive(e)
		if err != nil {
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		second, err := command.Derive(again)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("%q: %+v, then %+v (%v)", body, first, second, err)
		}
		// Normalised args stay unchanged.
		again.Args = first.Args
		third, err := command.Derive(again)
		if err != nil || !reflect.DeepEqual(first, third) {
			t.Fatalf("%q: %+v, with normalised args %+v (%v)", body, first, third, err)
		}
	})
}
