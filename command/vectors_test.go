package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

// vectors is spec/vectors/commands.json.
type vectors struct {
	Keys []struct {
		Name        string
		Declaration struct {
			Class            Class           `json:"class"`
			Args             json.RawMessage `json:"args_schema"`
			BindingPrincipal string          `json:"binding_principal"`
		}
		Envelope    string
		Args        string
		Principal   string
		Key         string
		KeyInputs   string `json:"key_inputs"`
		Fingerprint string
	}
	Refused []struct {
		Name, Envelope, Field string
		Code                  RefusalCode
	}
	ProviderKeys []struct {
		Key, Name   string
		ProviderKey string `json:"provider_key"`
	} `json:"provider_keys"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("../spec/vectors/commands.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Keys) == 0 || len(v.Refused) == 0 || len(v.ProviderKeys) == 0 {
		t.Fatal("vectors are missing")
	}
	return v
}

// done is a handler without effects.
var done = HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return &Outcome{}, nil })

// declared returns a declaration that can be registered.
func declared(class Class) Declaration {
	d := Declaration{Entity: "invoice", Action: "refund", Description: "Refunds an invoice.", Class: class}
	switch class {
	case I2:
		d.Justification, d.Window = "A repeat after the window is meant.", Window(10*time.Minute)
	case I3:
		d.Justification, d.Shielding = "The bank is called.", []Strategy{S1}
	}
	return d
}

func registered(t testing.TB, d Declaration) *Registered {
	t.Helper()
	r := NewRegistry()
	if err := r.Register(d, done); err != nil {
		t.Fatal(err)
	}
	return r.Lookup("t1", d.Entity, d.Action)
}

func TestKeyVectors(t *testing.T) {
	trace.Covers(t, "IDS-KEY-6", "IDS-KEY-7")
	for _, v := range readVectors(t).Keys {
		t.Run(v.Name, func(t *testing.T) {
			d := declared(v.Declaration.Class)
			d.Args, d.BindingPrincipal = v.Declaration.Args, v.Declaration.BindingPrincipal
			e, err := ParseEnvelope([]byte(v.Envelope))
			if err != nil {
				t.Fatal(err)
			}
			command := registered(t, d)
			got, err := command.Derive(e)
			if err != nil {
				t.Fatal(err)
			}
			want := Derivation{Key: v.Key, KeyVersion: 1, Fingerprint: v.Fingerprint, Args: json.RawMessage(v.Args), Principal: v.Principal}
			if got.Key != want.Key || got.KeyVersion != want.KeyVersion || got.Fingerprint != want.Fingerprint ||
				string(got.Args) != string(want.Args) || got.Principal != want.Principal {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
			in, err := command.inputs(e, got)
			if text := string(in.object("", "")); err != nil || text != v.KeyInputs {
				t.Errorf("key inputs: %s (%v)\nwant        %s", text, err, v.KeyInputs)
			}
			e.Key = v.Key
			if _, err := command.Derive(e); err != nil {
				t.Errorf("with its own key: %v", err)
			}
		})
	}
}

func TestRefusedVectors(t *testing.T) {
	command := registered(t, declared(I1))
	for _, v := range readVectors(t).Refused {
		t.Run(v.Name, func(t *testing.T) {
			e, err := ParseEnvelope([]byte(v.Envelope))
			if v.Code == KeyMismatch && err == nil {
				_, err = command.Derive(e)
			}
			refusal(t, err, v.Code, v.Field)
		})
	}
}

// refusal fails the test unless the error is that refusal.
func refusal(t *testing.T, err error, code RefusalCode, field string) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal %s of %q", err, code, field)
	}
	if r.Code != code || r.Field != field || r.Detail == "" {
		t.Errorf("got %s of %q (%s), want %s of %q", r.Code, r.Field, r.Detail, code, field)
	}
}

func TestProviderKeyVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range readVectors(t).ProviderKeys {
		got := ProviderKey(v.Key, v.Name)
		if got != v.ProviderKey || seen[got] {
			t.Errorf("ProviderKey(%q, %q) = %s, want %s, and no other's", v.Key, v.Name, got, v.ProviderKey)
		}
		seen[got] = true
	}
}
