package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"type":"a.b","data":{"x" : 1}}`, `{"type":"a","data_base64":"AP/+","content_type":"text/xml"}`, `{"type":"a","data":null,"attributes":{"k":"v"}}`,
		`{"type":"a","type":"b","data":1}`, `{"Type":"a","data":1}`, `[]`, `null`, `{`, `{"type":1}`, `{"type":"a","data":1}x`, ``, `{"a":{"b":[`,
		"{\"type\":\"a\",\"data\":\"\xff\"}", `{"type":"a","data":1,"idempotency_key":"0123456789abcdef"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		env, err := parseEnvelope("", raw)
		if err == nil {
			_, _, err = env.event("")
		}
		if err != nil {
			var p *problem.Problem
			if !errors.As(err, &p) || p.Status < 400 || p.Status > 499 || len(p.Errors) == 0 {
				t.Fatalf("not a refusal that names a field: %v", err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted what is not JSON: %q", raw)
		}
		if env.has["data"] && !bytes.Contains(raw, env.Data) {
			t.Fatalf("data was changed: %q in %q", env.Data, raw)
		}
	})
}

// FuzzMembers compares eachMember with the standard library.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, ` { "a" : [1,"]",{"b":"}"}] , "c\\u0041":"x\\"y" } `, `{"a":-1.5e3,"b":true,"a":null}`, `[1]`, `1`, `"{"`, `{"a":"\\\\"}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]json.RawMessage{}
		err := eachMember("", raw, func(name string, value json.RawMessage) error {
			got[name] = value // the last one counts, as in the standard library
			return nil
		})
		var want map[string]json.RawMessage
		if wantErr := json.Unmarshal(raw, &want); (err == nil) != (wantErr == nil && want != nil) {
			t.Fatalf("%q: %v, the standard library says %v", raw, err, wantErr)
		}
		if err != nil {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %d members, want %d", raw, len(got), len(want))
		}
		for name, value := range want {
			if !bytes.Equal(got[name], value) {
				t.Fatalf("%q: %q is %q, want %q", raw, name, got[name], value)
			}
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add(byte('e'), cursor(listEvents, [16]byte{1, 2, 3}))
	f.Add(byte('d'), cursor(listEvents, [16]byte{}))
	f.Add(byte('x'), "////")
	f.Add(byte('x'), "AXg")
	f.Fuzz(func(t *testing.T, kind byte, text string) {
		id, err := parseCursor(listKind(kind), text)
		if err == nil && text != "" && cursor(listKind(kind), id) != text {
			t.Fatalf("%q reads as %x, which is written %q", text, id, cursor(listKind(kind), id))
		}
	})
}

func FuzzPatch(f *testing.F) {
	for _, seed := range []string{`{"url":"https://b.example/"}`, `{"headers":{"A":null}}`, `{"policy":{"max_retries":3}}`, `{"auth":null}`, `[]`, `{"filter":{"a":[null]}}`, `{"policy":null,"metadata":{"a":"b"}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		spec := management.EndpointSpec{URL: "https://a.example/", Headers: map[string]string{"A": "1"}}
		if err := patchSpec(&spec, patch); err != nil {
			var p *problem.Problem
			if !errors.As(err, &p) || p.Status != 400 {
				t.Fatalf("not a 400: %v", err)
			}
		}
	})
}
