package faults

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// Linearisable checks that idempotency keys, commands and leases each behaved as one object that does one thing after another.
func (h *History) Linearisable() (violations []string) {
	for what, history := range map[string]struct {
		model      porcupine.Model
		operations map[string][]porcupine.Operation
	}{
		"idempotency key": {keyModel, h.keyOperations()},
		"command":         {commandModel, h.commandOperations()},
		"lease of shard":  {leaseModel, h.leaseOperations()},
	} {
		for name, operations := range history.operations {
			if !porcupine.CheckOperations(history.model, operations) {
				violations = append(violations, fmt.Sprintf("%s %s is not linearisable: %s", what, name, describe(operations)))
			}
		}
	}
	return violations
}

func describe(operations []porcupine.Operation) (text string) {
	for _, o := range operations {
		text += fmt.Sprintf("\n  %d–%d %+v → %+v", o.Call, o.Return, o.Input, o.Output)
	}
	return text
}

// operation makes an operation of a request. One without an answer may take effect at any later time.
func operation(s Span, input, output any, answered bool) porcupine.Operation {
	o := porcupine.Operation{Input: input, Call: int64(s.From), Output: output, Return: int64(s.To)}
	if !answered {
		o.Return = math.MaxInt64
	}
	return o
}

// A keyed is the state of an idempotency key, and the answer of a post with it.
type keyed struct {
	status  int
	variant int
	event   string
}

// keyModel: the first post that takes effect decides which event has the key. Posts with the same body get this event, others a conflict. Refused posts
// (503) may have had an effect or not.
var keyModel = porcupine.Model{
	Init: func() any { return keyed{} },
	Step: func(state, input, output any) (bool, any) {
		known, variant, answer := state.(keyed), input.(int), output.(keyed)
		switch answer.status {
		case accepted:
			if known.status == 0 {
				return true, keyed{accepted, variant, answer.event}
			}
			return known.variant == variant && (known.event == answer.event || known.event == ""), keyed{accepted, variant, answer.event}
		case conflict:
			return known.status != 0 && known.variant != variant, known
		}
		if answer.status == busy {
			return true, known
		}
		if known.status == 0 { // it may have had its effect now; one without effect is placed after all others
			return true, keyed{accepted, variant, ""}
		}
		return true, known
	},
}

func (h *History) keyOperations() map[string][]porcupine.Operation {
	of := map[string][]porcupine.Operation{}
	for _, p := range h.Posts {
		answered := p.Status == accepted || p.Status == conflict || p.Status == busy
		of[p.Key] = append(of[p.Key], operation(p.Span, p.Variant, keyed{p.Status, p.Variant, p.Event}, answered))
	}
	return of
}

// commandModel: a command has no result, or the one result that all answers tell from then on.
var commandModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, _, output any) (bool, any) {
		known, told := state.(string), output.(string)
		if told == "" { // processing, refused or unknown: says nothing
			return true, known
		}
		return known == "" || known == told, told
	},
}

func (h *History) commandOperations() map[string][]porcupine.Operation {
	of := map[string][]porcupine.Operation{}
	for _, c := range h.Commands {
		name := fmt.Sprint(c.N)
		of[name] = append(of[name], operation(c.Span, c.N, c.Result, c.Status == 200))
	}
	return of
}

// leaseModel: epochs only grow, and each has one owner, who may give it up.
var leaseModel = porcupine.Model{
	Init: func() any { return LeaseRead{} },
	Step: func(state, _, output any) (bool, any) {
		known, read := state.(LeaseRead), output.(LeaseRead)
		read.Span = Span{}
		same := read.Epoch == known.Epoch && (read.Owner == known.Owner || read.Owner == "")
		return read.Epoch > known.Epoch || same, read
	},
}

func (h *History) leaseOperations() map[string][]porcupine.Operation {
	of := map[string][]porcupine.Operation{}
	for _, l := range h.Leases {
		name := fmt.Sprint(l.Shard)
		of[name] = append(of[name], operation(l.Span, nil, l, true))
	}
	return of
}
