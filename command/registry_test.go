package command

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

type reconciler struct{ HandlerFunc }

func (reconciler) Reconcile(context.Context, *Call) (Found, error) { return Found{}, nil }

type compensator struct{ reconciler }

func (compensator) Compensate(context.Context, *Call, ProviderEffect) error { return nil }

// register registers a declaration and returns it as the registry lists it.
func register(t *testing.T, d Declaration, h Handler) (Declaration, error) {
	t.Helper()
	r := NewRegistry()
	if err := r.Register(d, h); err != nil {
		if r.Lookup("", d.Entity, d.Action) != nil || len(r.List("")) > 0 {
			t.Error("a refused command is registered")
		}
		return Declaration{}, err
	}
	list := r.List(d.Tenant)
	if len(list) != 1 {
		t.Fatalf("the registry lists %v", list)
	}
	return list[0], nil
}

// refused fails the test unless the declaration is refused in these words.
func refused(t *testing.T, d Declaration, h Handler, words ...string) {
	t.Helper()
	_, err := register(t, d, h)
	if err == nil {
		t.Errorf("%+v is registered", d)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func with(d Declaration, change func(*Declaration)) Declaration {
	change(&d)
	return d
}

func ptr[T any](v T) *T { return &v }

func TestRegistryClasses(t *testing.T) {
	trace.Covers(t, "IDS-CLS-1")
	for _, class := range []Class{I0, I1, I2, I3} {
		d, err := register(t, declared(class), done)
		if err != nil || d.Class != class || *d.Mutates != (class != I0) {
			t.Errorf("%s: %+v %v", class, d, err)
		}
	}
	refused(t, declared("I4"), done, "class", "I0, I1, I2, I3")
	refused(t, declared("i1"), done, "class", "I0, I1, I2, I3")
	refused(t, with(declared(""), func(d *Declaration) { d.Mutates = ptr(false) }), done, "class is missing")
	refused(t, with(declared(I1), func(d *Declaration) { d.Mutates = ptr(false) }), done, "declare I0")
}

func TestRegistryReadsDoNotMutate(t *testing.T) {
	trace.Covers(t, "IDS-CLS-4")
	refused(t, with(declared(I0), func(d *Declaration) { d.Mutates = ptr(true) }), done, "I0 only reads")
	if _, err := register(t, with(declared(I0), func(d *Declaration) { d.Mutates = ptr(false) }), done); err != nil {
		t.Error(err)
	}
	refused(t, with(declared(I0), func(d *Declaration) { d.Window = Window(time.Hour) }), done, "ttl is not for class I0")
	refused(t, with(declared(I0), func(d *Declaration) { d.Confirmation = true }), done, "requires_confirmation")
	refused(t, with(declared(I0), func(d *Declaration) { d.Shielding = []Strategy{S2} }), done, "shielding S2 is for class I3")
}

func TestRegistryDefaultClass(t *testing.T) {
	trace.Covers(t, "IDS-CLS-8")
	for _, mutates := range []*bool{nil, ptr(true)} {
		d, err := register(t, with(declared(""), func(d *Declaration) { d.Mutates = mutates }), done)
		if err != nil || d.Class != I1 || !*d.Mutates {
			t.Errorf("%+v %v", d, err)
		}
	}
}

func TestRegistryJustification(t *testing.T) {
	trace.Covers(t, "IDS-CLS-9")
	for _, class := range []Class{I2, I3} {
		for _, text := range []string{"", " \n"} {
			refused(t, with(declared(class), func(d *Declaration) { d.Justification = text }), done, "class_justification is required")
		}
	}
}

func TestRegistryShielding(t *testing.T) {
	trace.Covers(t, "IDS-CLS-7", "IDS-SHD-1", "IDS-SHD-2")
	i3 := func(list ...Strategy) Declaration {
		return with(declared(I3), func(d *Declaration) { d.Shielding = list })
	}
	refused(t, i3(), done, "shielding is required of class I3")
	refused(t, i3("S5"), done, "S1, S2, S3, S4")
	refused(t, i3(S1, S1), done, "twice")
	for _, c := range []struct {
		list []Strategy
		h    Handler
	}{
		{[]Strategy{S1}, done}, {[]Strategy{S2}, done}, {[]Strategy{S3}, reconciler{done}}, {[]Strategy{S4}, compensator{reconciler{done}}},
		{[]Strategy{S1, S4}, compensator{reconciler{done}}},
	} {
		d, err := register(t, i3(c.list...), c.h)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(d)
		want, _ := json.Marshal(c.list)
		if err != nil || !strings.Contains(string(text), `"shielding":`+string(want)) {
			t.Errorf("%s does not show %v (%v)", text, c.list, err)
		}
	}
	refused(t, i3(S3), done, "Reconciler")
	refused(t, i3(S4), done, "Compensator")
	refused(t, i3(S4), reconciler{done}, "Compensator")
	refused(t, with(declared(I1), func(d *Declaration) { d.Shielding = []Strategy{S1} }), done, "is for class I3")
	if _, err := register(t, with(declared(I1), func(d *Declaration) { d.Shielding = []Strategy{S2} }), done); err != nil {
		t.Errorf("events of an I1 command: %v", err)
	}
}

func TestRegistryWindow(t *testing.T) {
	for _, class := range []Class{I1, I3} {
		d, err := register(t, declared(class), done)
		if err != nil || d.Window != Window(30*24*time.Hour) {
			t.Errorf("%s: default %v %v", class, d.Window, err)
		}
		if text, err := json.Marshal(d); err != nil || !strings.Contains(string(text), `"ttl":"30d"`) {
			t.Errorf("%s %v", text, err)
		}
		d, err = register(t, with(declared(class), func(d *Declaration) { d.Window = Forever }), done)
		if err != nil || d.Window != Forever {
			t.Errorf("%s: never: %v %v", class, d.Window, err)
		}
	}
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	command := registered(t, with(declared(I1), func(d *Declaration) { d.Window = Window(25 * time.Hour) }))
	if end := command.Window.End(created); !end.Equal(created.Add(25 * time.Hour)) {
		t.Errorf("a record of %v expires at %v", created, end)
	}
	for _, w := range []Window{-2, 1, Window(longest) + 1} {
		refused(t, with(declared(I1), func(d *Declaration) { d.Window = w }), done, "ttl must be")
	}
}

func TestRegistryCriticalWindow(t *testing.T) {
	trace.Covers(t, "IDS-STO-9")
	critical := func(w Window, short bool) Declaration {
		return with(declared(I2), func(d *Declaration) { d.Critical, d.Window, d.ShortWindow = true, w, short })
	}
	refused(t, critical(Window(24*time.Hour-time.Second), false), done, "too short", "allow_short_ttl")
	for _, d := range []Declaration{critical(Window(24*time.Hour), false), critical(Window(time.Hour), true)} {
		if _, err := register(t, d, done); err != nil {
			t.Error(err)
		}
	}
	for _, class := range []Class{I1, I3} {
		d, err := register(t, with(declared(class), func(d *Declaration) { d.Critical = true }), done)
		if err != nil || d.Window.Duration() != 30*24*time.Hour {
			t.Errorf("%s: undeclared: %v %v", class, d.Window, err)
		}
	}
	refused(t, with(declared(I2), func(d *Declaration) { d.Window = 0 }), done, "ttl is required of class I2")
	refused(t, with(declared(I2), func(d *Declaration) { d.Window = Forever }), done, "never")
}

func TestRegistryShortWindow(t *testing.T) {
	trace.Covers(t, "IDS-STO-10")
	d, err := register(t, with(declared(I2), func(d *Declaration) { d.Window = Window(10 * time.Minute) }), done)
	if err != nil || d.Window.Duration() != 10*time.Minute {
		t.Errorf("%v %v", d.Window, err)
	}
}

func TestRegistryRefuses(t *testing.T) {
	for _, c := range []struct {
		says   string
		change func(*Declaration)
	}{
		{"entity must", func(d *Declaration) { d.Entity = "Invoice" }},
		{"action must", func(d *Declaration) { d.Action = "" }},
		{"description is required", func(d *Declaration) { d.Description = " " }},
		{"description must", func(d *Declaration) { d.Description = strings.Repeat("x", maxText+1) }},
		{"binding_principal", func(d *Declaration) { d.BindingPrincipal = "actor" }},
		{"scopes[0]", func(d *Declaration) { d.Scopes = []string{""} }},
		{"twice", func(d *Declaration) { d.Scopes = []string{"a", "a"} }},
		{"tenant must", func(d *Declaration) { d.Tenant = "a\x00" }},
		{"requires_step_up", func(d *Declaration) { d.StepUp = true }},
		{"masked[0].member", func(d *Declaration) { d.Masked = []Mask{{"", "s"}} }},
		{"masked[0].scope", func(d *Declaration) { d.Masked = []Mask{{"m", ""}} }},
		{`"m" twice`, func(d *Declaration) { d.Masked = []Mask{{"m", "s"}, {"m", "t"}} }},
		{"secret[0]", func(d *Declaration) { d.Secret = []string{""} }},
		{`"m" twice`, func(d *Declaration) { d.Secret = []string{"m", "m"} }},
		{"masked and secret", func(d *Declaration) { d.Masked, d.Secret = []Mask{{"m", "s"}}, []string{"m"} }},
		{"class I3 with shielding S1", func(d *Declaration) { d.Tenant, d.Remote = "t1", &Remote{Endpoint: "sub_1"} }},
		{"remote.endpoint", func(d *Declaration) { d.Remote = &Remote{} }},
		{"declare the tenant", func(d *Declaration) { d.Remote = &Remote{Endpoint: "sub_1"} }},
		{"remote.timeout", func(d *Declaration) { d.Remote = &Remote{Endpoint: "sub_1", Timeout: Forever} }},
	} {
		refused(t, with(declared(I1), c.change), done, c.says)
	}
	refused(t, declared(I1), nil, "no handler")
	refused(t, declared(I1), HandlerFunc(nil), "no handler")
	// One error lists all problems.
	refused(t, Declaration{Entity: "X", Class: I3}, nil, "entity must", "action must", "description", "no handler", "class_justification", "shielding")
}

func TestRegistryRemote(t *testing.T) {
	d, err := register(t, with(declared(I3), func(d *Declaration) { d.Tenant, d.Remote = "t1", &Remote{Endpoint: "sub_1"} }), done)
	if err != nil || d.Remote.Timeout.Duration() != time.Minute {
		t.Errorf("%+v %v", d.Remote, err)
	}
	refused(t, with(declared(I3), func(d *Declaration) {
		d.Tenant, d.Remote, d.Shielding = "t1", &Remote{Endpoint: "sub_1"}, []Strategy{S2}
	}), done, "shielding S1")
}

func TestRegistryLookup(t *testing.T) {
	r := NewRegistry()
	add := func(tenant, entity, action, description string) {
		t.Helper()
		d := Declaration{Tenant: tenant, Entity: entity, Action: action, Description: description}
		if err := r.Register(d, done); err != nil {
			t.Fatal(err)
		}
	}
	add("", "b", "x", "common")
	add("t1", "b", "x", "t1's")
	add("t2", "c", "x", "t2's")
	add("", "a", "y", "common")
	if err := r.Register(Declaration{Entity: "a", Action: "y", Description: "again"}, done); err == nil || !strings.Contains(err.Error(), "registered already") {
		t.Errorf("twice: %v", err)
	}
	for _, c := range []struct{ tenant, entity, action, want string }{
		{"t1", "b", "x", "t1's"}, {"t2", "b", "x", "common"}, {"", "b", "x", "common"}, {"t2", "c", "x", "t2's"}, {"t1", "c", "x", ""}, {"t1", "b", "y", ""},
	} {
		got := ""
		if found := r.Lookup(c.tenant, c.entity, c.action); found != nil {
			got = found.Description
		}
		if got != c.want {
			t.Errorf("%s %s.%s: %q, want %q", c.tenant, c.entity, c.action, got, c.want)
		}
	}
	for tenant, want := range map[string]string{"t1": "a.y common, b.x t1's", "t2": "a.y common, b.x common, c.x t2's", "": "a.y common, b.x common"} {
		var got []string
		for _, d := range r.List(tenant) {
			got = append(got, d.Name()+" "+d.Description)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %v, want %s", tenant, got, want)
		}
	}
}

func TestReadDeclarations(t *testing.T) {
	list, err := ReadDeclarations(strings.NewReader(`{"commands":[
		{"entity":"invoice","action":"refund","description":"Refunds.","class":"I3","class_justification":"bank","ttl":"90d","critical":true,
		 "args_schema":{"type":"object","properties":{"class_of_goods":{"x-fold":"case"}}},"scopes":["invoices:write"],"target_required":true,
		 "binding_principal":"effective_actor_id","requires_confirmation":true,"requires_step_up":true,"shielding":["S1"],
		 "masked":[{"member":"iban","scope":"invoices:read"}],"secret":["pin"],"tenant":"t1","remote":{"endpoint":"sub_1","timeout":"2m"}},
		{"entity":"invoice","action":"show","description":"Shows.","class":"I0","mutates":false,"scopes":[]}]}`))
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	r := NewRegistry()
	for _, d := range list {
		if err := r.Register(d, done); err != nil {
			t.Error(err)
		}
	}
	text, err := json.Marshal(map[string]any{"commands": r.List("t1")})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ReadDeclarations(strings.NewReader(string(text))); err != nil || len(again) != 2 || again[0].Window != Window(90*day) {
		t.Errorf("what the registry shows cannot be read again: %v", err)
	}
	for text, says := range map[string]string{
		``:                                      "not valid JSON",
		`[]`:                                    `"commands"`,
		`{}`:                                    `"commands"`,
		`{"commands":{}}`:                       `"commands"`,
		`{"commands":[1]}`:                      "/commands/0 must be an object",
		`{"command":[]}`:                        "/command is not a member",
		`{"commands":[{}],"commands":[]}`:       "/commands is given twice",
		`{"commands":[{},{"Class":"I1"}]}`:      "/commands/1/Class is not a member",
		`{"commands":[{"remote":{"url":"x"}}]}`: "/commands/0/remote/url is not a member",
		`{"commands":[{"masked":[{"member":"a","of":"b"}]}]}`: "/commands/0/masked/0/of is not a member",
		`{"commands":[{"ttl":"5 minutes"}]}`:                  "/commands/0/ttl",
		`{"commands":[{"ttl":300}]}`:                          "/commands/0/ttl must not be a number",
		`{"commands":[{"remote":{"endpoint":1}}]}`:            "/commands/0/remote/endpoint must not be a number",
	} {
		if list, err := ReadDeclarations(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v %v, want one that says %s", text, list, err, says)
		}
	}
}
