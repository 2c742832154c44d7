package command

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"
)

const directArgs = `{"type":"object","properties":{"name":{"type":"string","x-fold":"case"},"n":{"type":"integer","default":3},
	"share":{"type":"number"},"tags":{"type":"array","items":{"type":"string"},"x-set":true},"trace":{"x-ephemeral":true},
	"deep":{"type":"object"},"on":{"type":"boolean"}}}`

// A direct envelope has the key, the fingerprint and the args of the same command in JSON.
func TestDirectEnvelopesAreTheSameCommands(t *testing.T) {
	reg := NewRegistry()
	err := reg.Register(Declaration{Entity: "thing", Action: "do", Description: "For a test.", Args: json.RawMessage(directArgs)},
		HandlerFunc(func(context.Context, *Call) (*Outcome, error) { return &Outcome{}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	c := reg.Lookup("ten", "thing", "do")
	envelope := func() *Envelope {
		return &Envelope{CommandID: NewID(time.Unix(1, 0)), TenantID: "ten", ActorID: "anna", IssuedAt: time.Unix(1, 0), Intent: Intent{Entity: "thing", Action: "do"}}
	}
	for text, args := range map[string]map[string]any{
		``:                                    nil,
		`{}`:                                  {},
		`{"name":"Zoe\u0308","n":3}`:          {"name": "ZO\u00cb"},
		`{"tags":["b","a","b"],"share":1e-7}`: {"tags": []string{"a", "b"}, "share": 0.0000001, "n": 3},
		`{"share":1.5e3,"trace":1}`:           {"share": 1500, "trace": "other"},
		`{"n":-9007199254740991}`:             {"n": int64(-9007199254740991)},
		`{"deep":{"a":[1,null,true,{"b":""}]},"on":false}`: {"deep": map[string]any{"a": []any{1.0, nil, true, map[string]any{"b": ""}}}, "on": false},
	} {
		said, direct := envelope(), envelope()
		said.Args = json.RawMessage(text)
		direct.Direct(args, nil)
		want, err := c.Derive(said)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := c.Derive(direct)
		if err != nil || got.Key != want.Key || got.Fingerprint != want.Fingerprint || string(got.Args) != string(want.Args) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	deep := map[string]any{}
	for range maxNesting + 1 {
		deep = map[string]any{"a": deep}
	}
	for what, args := range map[string]map[string]any{
		"not UTF-8": {"name": "\xff"}, "a name that is not UTF-8": {"\xff": 1}, "a name twice": {"Zo\u00eb": 1, "Zoe\u0308": 2}, "rounded": {"n": int64(1<<53 + 1)},
		"endless": {"share": math.Inf(1)}, "not a type of JSON": {"n": uint8(1)}, "not as declared": {"n": "three"}, "too deep": deep,
		"too long": {"name": string(make([]byte, MaxEnvelope))},
	} {
		e := envelope()
		e.Direct(args, nil)
		var r *Refusal
		if d, err := c.Derive(e); !errors.As(err, &r) {
			t.Errorf("%s: %+v, %v", what, d, err)
		}
	}
}

// A direct submission runs its planner once, and gets the planner's result. A repeat runs nothing and gets the stored
// result.
func TestDirectSubmissionsPlanOnce(t *testing.T) {
	r := newRig(t)
	handled, planned := 0, 0
	r.register(Declaration{}, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
		handled++
		return &Outcome{}, nil
	}))
	type value struct {
		N int `json:"n"`
	}
	made := &value{7}
	submit := func() *Answer {
		return r.submit(func(e *Envelope) {
			e.Direct(nil, HandlerFunc(func(context.Context, *Call) (*Outcome, error) {
				planned++
				return &Outcome{Result: made}, nil
			}))
		})
	}
	if a := submit(); !a.Executed || a.Value != any(made) || string(a.Outcome.Result) != `{"n":7}` {
		t.Errorf("first: %+v, %s", a, a.Outcome.Result)
	}
	if a := submit(); a.Executed || a.Value != nil || string(a.Outcome.Result) != `{"n":7}` {
		t.Errorf("again: %+v, %s", a, a.Outcome.Result)
	}
	if planned != 1 || handled != 0 {
		t.Errorf("planned %d times, handled %d times", planned, handled)
	}
}
