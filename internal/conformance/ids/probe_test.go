package ids

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
)

// probe is the handler of the tests' commands: it counts, waits at a gate, ends as instructed and returns a random value.
type probe struct {
	effects, runs tally

	mu     sync.Mutex
	gates  map[string]*gate
	inside map[string]int
	most   int // handlers of one command that were inside at the same time
	state  map[string]string
}

func newProbe() *probe {
	return &probe{gates: map[string]*gate{}, inside: map[string]int{}, state: map[string]string{}}
}

// A gate holds the handler of a command until it is opened.
type gate struct {
	reached, open chan struct{}
	once          sync.Once
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// gate makes the handler of a command wait. The gate opens when the test ends, if not before.
func (c *caller) gate(id string) *gate {
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	c.probe.mu.Lock()
	c.probe.gates[c.tenant+"/"+id] = g
	c.probe.mu.Unlock()
	c.t.Cleanup(g.release)
	return g
}

// behind submits a command and returns once its handler waits at its gate; the channel delivers the response.
func (c *caller) behind(g *gate, envelope object) <-chan *answer {
	answered := make(chan *answer, 1)
	go func() { answered <- c.post(envelope) }()
	g.wait(c.t)
	return answered
}

func (g *gate) wait(t testing.TB) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(5 * time.Minute):
		t.Fatal("no handler came to the gate")
	}
}

// enter counts a handler in, and returns the gate it has to wait at.
func (p *probe) enter(at string) *gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside[at]++
	p.most = max(p.most, p.inside[at])
	g := p.gates[at]
	if g != nil {
		delete(p.gates, at)
		close(g.reached)
	}
	return g
}

func (p *probe) leave(at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside[at]--
}

const probeArgs = `{"type":"object","additionalProperties":false,"required":["id"],"properties":{
	"id":{"type":"string"},"end":{"enum":["execute","reject","fail","pass"],"default":"execute"},
	"value":{"type":"string"},"note":{"type":"string","x-ephemeral":true},"amount":{"type":"number"},
	"password":{"type":"string"},"tags":{"type":"array","x-set":true,"items":{"type":"string"}}}}`

// Execute is a command.Handler.
func (p *probe) Execute(ctx context.Context, c *command.Call) (*command.Outcome, error) {
	var in struct{ ID, End, Value string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return nil, err
	}
	at := c.Tenant + "/" + in.ID
	run := p.runs.add(at)
	g := p.enter(at)
	defer p.leave(at)
	if g != nil {
		select {
		case <-g.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case in.End == "reject":
		return nil, command.Reject("insufficient_funds", "there is not enough")
	case in.End == "fail":
		return nil, &command.Failure{Reason: "ledger_closed", Detail: "the books are closed", Err: errors.New("told to fail")}
	case in.End == "pass" && run == 1:
		return nil, command.Transient(errors.New("told to fail once"))
	}
	p.effects.add(at)
	if in.Value != "" {
		p.mu.Lock()
		p.state[c.Tenant+"/"+c.Intent.Target] = in.Value
		p.mu.Unlock()
	}
	return &command.Outcome{
		Summary: "Effect " + in.ID + " happened.",
		Result:  map[string]any{"id": in.ID, "value": rand.Text(), "balance": 4711, "secret": "whsec-" + rand.Text()},
	}, nil
}

// stateOf returns the value that commands have set a target to.
func (c *caller) stateOf(target string) string {
	c.probe.mu.Lock()
	defer c.probe.mu.Unlock()
	return c.probe.state[c.tenant+"/"+target]
}

// register adds the tests' commands to a registry.
func register(reg *command.Registry, p *probe, shop *provider) error {
	const why = "a test of this class"
	var errs []error
	add := func(action string, h command.Handler, d command.Declaration) {
		if d.Entity == "" {
			d.Entity = "effect"
		}
		if d.Args == nil {
			d.Args = json.RawMessage(probeArgs)
		}
		if d.Scopes == nil {
			d.Scopes = []string{"ingest"}
		}
		d.Action, d.Description = action, "For a test."
		errs = append(errs, reg.Register(d, h))
	}
	add("count", p, command.Declaration{})
	add("read", p, command.Declaration{Class: command.I0})
	add("day", p, command.Declaration{Window: command.Window(24 * time.Hour), Critical: true})
	add("window", p, command.Declaration{Class: command.I2, Justification: why, Window: command.Window(10 * time.Minute)})
	add("brief", p, command.Declaration{Window: command.Window(time.Second)})
	add("shared", p, command.Declaration{BindingPrincipal: "effective_actor_id"})
	add("remove", p, command.Declaration{Confirmation: true})
	add("admin", p, command.Declaration{Confirmation: true, StepUp: true})
	add("managed", p, command.Declaration{Scopes: []string{"manage"}, Masked: []command.Mask{{Member: "balance", Scope: "admin"}}})
	add("secret", p, command.Declaration{Secret: []string{"secret"}})

	charge := json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`)
	s1, s3, s4 := command.S1, command.S3, command.S4
	for action, d := range map[string]command.Declaration{
		"keyed":       {Shielding: []command.Strategy{s1}},
		"ledgered":    {Shielding: []command.Strategy{s3}},
		"compensable": {Shielding: []command.Strategy{s3, s4}},
	} {
		d.Entity, d.Class, d.Justification, d.Args = "charge", command.I3, why, charge
		add(action, charging{shop}, d)
	}
	return errors.Join(errs...)
}
