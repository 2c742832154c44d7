package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

// derive derives from the changed example.
func derive(t *testing.T, c *Registered, change func(*Envelope)) *Derivation {
	t.Helper()
	e := example()
	change(e)
	d, err := c.Derive(e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestKeyInputs(t *testing.T) {
	trace.Covers(t, "IDS-KEY-2", "IDS-KEY-3")
	command := registered(t, declared(I1))
	seen := map[string]string{}
	for name, change := range map[string]func(*Envelope){
		"as it is":      func(*Envelope) {},
		"tenant":        func(e *Envelope) { e.TenantID = "t2" },
		"actor":         func(e *Envelope) { e.ActorID = "a9" },
		"entity":        func(e *Envelope) { e.Intent.Entity = "order" },
		"action":        func(e *Envelope) { e.Intent.Action = "void" },
		"target":        func(e *Envelope) { e.Intent.Target = "INV-2" },
		"no target":     func(e *Envelope) { e.Intent.Target = "" },
		"args":          func(e *Envelope) { e.Args = json.RawMessage(`{"amount":501,"currency":"USD"}`) },
		"no args":       func(e *Envelope) { e.Args = nil },
		"kind":          func(e *Envelope) { e.Kind = "other" },
		"declared kind": func(e *Envelope) { e.Kind = "" },
	} {
		key := derive(t, command, change).Key
		if other, taken := seen[key]; taken {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(key) {
			t.Errorf("%s: key %q", name, key)
		}
	}
	if named := derive(t, command, func(e *Envelope) { e.Kind = "I1" }); seen[named.Key] != "declared kind" {
		t.Error("the declared class is not the kind of an envelope without one")
	}
}

func TestCanonicalKey(t *testing.T) {
	trace.Covers(t, "IDS-KEY-4")
	command := registered(t, declared(I1))
	one := []byte(`{"command_id":"cmd_01936f5e-7c1a-7b3c-9d2e-4f5a6b7c8d9e","tenant_id":"t1","actor_id":"a1",
		"intent":{"entity":"invoice","action":"refund","target":"caf\u00e9"},"args":{"amount":1,"né":{"a":[1,2],"b":null}},"issued_at":"2026-03-01T12:00:00Z"}`)
	other := []byte(`{"issued_at":"2026-03-01T12:00:00Z","args":{ "ne\u0301":{"b":null,"a":[1.0,20e-1]},"amount":1.0},"intent":{"target":"cafe\u0301",
		"action":"refund","entity":"invoice"},"actor_id":"a1","tenant_id":"t1","command_id":"cmd_01936f5e-7c1a-7b3c-9d2e-4f5a6b7c8d9e"}`)
	var got [2]*Derivation
	for i, text := range [][]byte{one, other} {
		e, err := ParseEnvelope(text)
		if err != nil {
			t.Fatal(err)
		}
		if got[i], err = command.Derive(e); err != nil {
			t.Fatal(err)
		}
	}
	if got[0].Key != got[1].Key || got[0].Fingerprint != got[1].Fingerprint || string(got[0].Args) != string(got[1].Args) {
		t.Errorf("%+v\n%+v", got[0], got[1])
	}
	if string(got[0].Args) != `{"amount":1,"né":{"a":[1,2],"b":null}}` {
		t.Errorf("args %s", got[0].Args)
	}
}

func TestEphemeralMembers(t *testing.T) {
	trace.Covers(t, "IDS-KEY-5")
	command := registered(t, declared(I1))
	want := derive(t, command, func(*Envelope) {})
	for name, change := range map[string]func(*Envelope){
		"command_id": func(e *Envelope) { e.CommandID = "cmd_01936f5e-7c1a-7b3c-9d2e-4f5a6b7c8d9f" },
		"issued_at":  func(e *Envelope) { e.IssuedAt = e.IssuedAt.Add(time.Hour) },
		"message_id": func(e *Envelope) { e.MessageID = "m2" },
		"channel":    func(e *Envelope) { e.Channel = "" },
		"nonce":      func(e *Envelope) { e.Nonce = "n2" },
	} {
		if got := derive(t, command, change); got.Key != want.Key || got.Fingerprint != want.Fingerprint {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if got := derive(t, command, func(e *Envelope) { e.Options = nil }); got.Key != want.Key || got.Fingerprint == want.Fingerprint {
		t.Errorf("options: %+v beside %+v", got, want)
	}
}

func TestKeySentByClient(t *testing.T) {
	command := registered(t, declared(I1))
	e := example()
	e.Key = derive(t, command, func(*Envelope) {}).Key
	if _, err := command.Derive(e); err != nil {
		t.Errorf("its own key: %v", err)
	}
	e.Intent.Target = "INV-2"
	_, err := command.Derive(e)
	refusal(t, err, KeyMismatch, "/idempotency_key")
}

func TestBindingPrincipal(t *testing.T) {
	d := declared(I1)
	d.BindingPrincipal = "effective_actor_id"
	bound, plain := registered(t, d), registered(t, declared(I1))
	user := func(e *Envelope) { e.ActorID, e.EffectiveActorID = "user", "" }
	system := func(e *Envelope) { e.ActorID, e.EffectiveActorID = "system", "user" }

	a, b := derive(t, bound, user), derive(t, bound, system)
	if a.Key != b.Key || a.Fingerprint != b.Fingerprint || a.Principal != "user" || b.Principal != "user" {
		t.Errorf("bound: %+v\n%+v", a, b)
	}
	a, b = derive(t, plain, user), derive(t, plain, system)
	if a.Key == b.Key || b.Principal != "system" {
		t.Errorf("not bound: %+v\n%+v", a, b)
	}
}

func TestTargetRequired(t *testing.T) {
	d := declared(I1)
	d.TargetRequired = true
	e := example()
	e.Intent.Target = ""
	_, err := registered(t, d).Derive(e)
	refusal(t, err, Malformed, "/intent/target")
}

// Fingerprints distinguish two commands under one key, even if HASH is broken.
func TestHashCollision(t *testing.T) {
	r := NewRegistry()
	r.hash = func([]byte) [sha256.Size]byte { return [sha256.Size]byte{1} }
	if err := r.Register(declared(I1), done); err != nil {
		t.Fatal(err)
	}
	command := r.Lookup("t1", "invoice", "refund")
	a, b := derive(t, command, func(*Envelope) {}), derive(t, command, func(e *Envelope) { e.Intent.Target = "INV-2" })
	if a.Key != b.Key || a.Fingerprint == b.Fingerprint {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// The hashed text is assembled by hand. It must equal the canonical form of the whole object.
func TestHashedTextIsCanonical(t *testing.T) {
	r := NewRegistry()
	var hashed []byte
	r.hash = func(text []byte) [sha256.Size]byte { hashed = text; return sha256.Sum256(text) }
	if err := r.Register(declared(I1), done); err != nil {
		t.Fatal(err)
	}
	command := r.Lookup("t1", "invoice", "refund")
	for _, name := range []string{"plain", `a"b\c</>&`, "\u00e9\u2028\U0001f600\ufb01", "~\u007e \u00a0"} {
		e := example()
		e.TenantID, e.ActorID, e.EffectiveActorID, e.Intent.Target = name, name, name, name
		text := written(t, &Envelope{TenantID: name})
		e.Args, e.Options = text, text
		d, err := command.Derive(e)
		if err != nil {
			t.Fatal(err)
		}
		if form, err := Canonical(hashed); err != nil || string(form) != string(hashed) {
			t.Errorf("the key is of\n%s, whose canonical form is\n%s (%v)", hashed, form, err)
		}
		var whole map[string]any
		if err := json.Unmarshal(hashed, &whole); err != nil {
			t.Fatal(err)
		}
		whole["effective_actor_id"], whole["options"] = name, json.RawMessage(text)
		form, err := canonical(whole)
		if sum := sha256.Sum256(form); err != nil || d.Fingerprint != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("the fingerprint is not that of %s (%v)", form, err)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	d := declared(I1)
	d.Args = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"amount":{"type":"integer"},
		"currency":{"type":"string","x-fold":"case"},"note":{"default":""}}}`)
	command := registered(b, d)
	text := written(b, example())
	b.ReportAllocs()
	for b.Loop() {
		e, err := ParseEnvelope(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := command.Derive(e); err != nil {
			b.Fatal(err)
		}
	}
}
