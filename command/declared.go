package command

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	defaultWindow  = Window(30 * day)
	criticalWindow = Window(day) // shortest window of a critical command (IDS-STO-9)
	remoteTimeout  = Window(time.Minute)
	maxTimeout     = Window(time.Hour)
	maxText        = 2000 // bytes of a text that people read
)

// withDefaults sets the defaults of absent members. It copies the slices that it changes.
func (d Declaration) withDefaults() Declaration {
	if d.Class == "" && (d.Mutates == nil || *d.Mutates) {
		d.Class = I1 // IDS-CLS-8
	}
	if d.Mutates == nil {
		mutates := d.Class != I0
		d.Mutates = &mutates
	}
	if d.Window == 0 && (d.Class == I1 || d.Class == I3) {
		d.Window = defaultWindow // IDS-STO-9
	}
	d.Scopes = append([]string{}, d.Scopes...) // shown as [], not as null
	if d.Remote != nil && d.Remote.Timeout == 0 {
		remote := *d.Remote
		remote.Timeout = remoteTimeout
		d.Remote = &remote
	}
	return d
}

// problems lists the errors of a declaration that has its defaults set, and of its handler.
func (d *Declaration) problems(h Handler) (*argsSchema, []error) {
	var p problemList
	d.checkNames(&p)
	d.checkClass(&p)
	d.checkWindow(&p)
	d.checkShielding(&p, h)
	d.checkConfirmation(&p)
	d.checkOutcome(&p)
	d.checkRemote(&p)
	args, err := compileArgs(d.Args)
	if err != nil {
		p.add("args_schema: %w", err)
	}
	return args, p
}

type problemList []error

func (p *problemList) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (d *Declaration) checkNames(p *problemList) {
	for _, m := range []struct{ name, value string }{{"entity", d.Entity}, {"action", d.Action}} {
		if detail := checkWord(m.value); detail != "" {
			p.add("%s %s", m.name, detail)
		}
	}
	if strings.TrimSpace(d.Description) == "" {
		p.add("description is required: one sentence on what the command does")
	}
	for _, m := range []struct{ name, value string }{{"description", d.Description}, {"class_justification", d.Justification}} {
		if len(m.value) > maxText {
			p.add("%s must have at most %d bytes", m.name, maxText)
		}
	}
	if detail := checkIdentity(d.Tenant); detail != "" {
		p.add("tenant %s", detail)
	}
	if d.BindingPrincipal != "" && d.BindingPrincipal != effectiveActor {
		p.add("binding_principal must be %q, or absent: then the actor is in the key", effectiveActor)
	}
	for i, scope := range d.Scopes {
		if detail := checkText(scope); detail != "" || scope == "" {
			p.add("scopes[%d] must be the name of a scope", i)
		} else if slices.Contains(d.Scopes[:i], scope) {
			p.add("scopes name %q twice", scope)
		}
	}
}

func (d *Declaration) checkClass(p *problemList) {
	mutates := *d.Mutates
	switch d.Class {
	case "":
		p.add(`class is missing: declare I0, because it says "mutates": false`)
		return
	case I0:
		if mutates {
			p.add("class I0 only reads: a command that mutates is I1, I2 or I3")
		}
		return
	case I1:
	case I2, I3:
		if strings.TrimSpace(d.Justification) == "" {
			p.add("class_justification is required of class %s: write down why I1 does not do", d.Class)
		}
	default:
		p.add("class %.20q is unknown: it is one of I0, I1, I2, I3", string(d.Class))
		return
	}
	if !mutates {
		p.add(`class %s is for commands that mutate: declare I0, or leave out "mutates": false`, d.Class)
	}
}

func (d *Declaration) checkWindow(p *problemList) {
	w := d.Window
	switch {
	case d.Class == I0 && w != 0:
		p.add("ttl is not for class I0: it leaves no record")
	case d.Class == I2 && w == 0:
		p.add("ttl is required of class I2: say for how long a repeat is recognised, such as 10m")
	case d.Class == I2 && w == Forever:
		p.add("ttl never is not for class I2, whose window ends: declare I1, or a length of time")
	case w != 0 && w != Forever && (w < Window(time.Second) || w > Window(longest)):
		p.add("ttl must be from 1s to %s, or never", Window(longest))
	case d.Critical && w != 0 && w != Forever && w < criticalWindow && !d.ShortWindow:
		p.add("ttl %s is too short for a critical command: declare %s or more, or set allow_short_ttl when a repeat after it does no harm",
			w, criticalWindow)
	}
}

func (d *Declaration) checkShielding(p *problemList, h Handler) {
	if f, ok := h.(HandlerFunc); h == nil || ok && f == nil {
		p.add("has no handler: pass the one that executes it, or that calls the remote")
	}
	if d.Class == I3 && len(d.Shielding) == 0 {
		p.add("shielding is required of class I3: name at least one of S1, S2, S3, S4 by which its calls do not happen twice")
	}
	for i, s := range d.Shielding {
		switch {
		case !slices.Contains([]Strategy{S1, S2, S3, S4}, s):
			p.add("shielding %.20q is unknown: it is one of S1, S2, S3, S4", string(s))
			continue
		case slices.Contains(d.Shielding[:i], s):
			p.add("shielding names %s twice", s)
			continue
		case d.Class == I0, (d.Class == I1 || d.Class == I2) && s != S2:
			// S2 alone calls no other system: its events are effects in the outcome's transaction.
			p.add("shielding %s is for class I3: a command that calls an external system has to declare that class", s)
		}
		if _, ok := h.(Reconciler); s == S3 && !ok {
			p.add("shielding S3 needs a handler that is a Reconciler: it asks the provider what became of a call")
		}
		if _, ok := h.(Compensator); s == S4 && !ok {
			p.add("shielding S4 needs a handler that is a Compensator: it takes back what happened twice")
		}
	}
}

func (d *Declaration) checkConfirmation(p *problemList) {
	if d.Class == I0 && (d.Confirmation || d.StepUp) {
		p.add("requires_confirmation is not for class I0: nothing is kept that could wait")
	}
	if d.StepUp && !d.Confirmation {
		p.add("requires_step_up comes on top of requires_confirmation: set both")
	}
}

func (d *Declaration) checkOutcome(p *problemList) {
	var members []string
	for i, m := range d.Masked {
		switch {
		case m.Member == "" || checkText(m.Member) != "":
			p.add("masked[%d].member must be the name of a member of the result", i)
		case slices.Contains(members, m.Member):
			p.add("masked names the member %q twice", m.Member)
		}
		if m.Scope == "" || checkText(m.Scope) != "" {
			p.add("masked[%d].scope must be the scope that lets a caller see %q", i, m.Member)
		}
		members = append(members, m.Member)
	}
	for i, name := range d.Secret {
		switch {
		case name == "" || checkText(name) != "":
			p.add("secret[%d] must be the name of a member of the result", i)
		case slices.Contains(d.Secret[:i], name):
			p.add("secret names the member %q twice", name)
		case slices.Contains(members, name):
			p.add("the member %q is masked and secret: nothing keeps a secret that could be masked; leave one out", name)
		}
	}
}

func (d *Declaration) checkRemote(p *problemList) {
	if d.Remote == nil {
		return
	}
	if d.Class != I3 || !slices.Contains(d.Shielding, S1) {
		p.add("remote is a call to an external system: declare class I3 with shielding S1, for the service gets the command's key")
	}
	if d.Tenant == "" {
		p.add("remote is a tenant's own service: declare the tenant")
	}
	if d.Remote.Endpoint == "" || checkText(d.Remote.Endpoint) != "" {
		p.add("remote.endpoint must be the id of one of the tenant's endpoints")
	}
	if t := d.Remote.Timeout; t < Window(time.Second) || t > maxTimeout {
		p.add("remote.timeout must be from 1s to %s", maxTimeout)
	}
}
