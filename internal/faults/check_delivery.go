package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// An event is what the history tells of one idempotency key.
type event struct {
	key, kind    string
	span         Span // from the first request to the last answer
	acknowledged bool
}

// events sums the posts up by their keys.
func (h *History) events() map[string]*event {
	events := map[string]*event{}
	for _, p := range h.Posts {
		e := events[p.Key]
		if e == nil {
			e = &event{key: p.Key, kind: p.Type, span: p.Span}
			events[p.Key] = e
		}
		e.span = Span{min(e.span.From, p.From), max(e.span.To, p.To)}
		e.acknowledged = e.acknowledged || p.Status == accepted
	}
	return events
}

const accepted = 202

// certainly tells what an endpoint certainly was during the whole span by its changes: whether it wanted events, and whether it was paused. ok is
// false if a change was under way.
func certainly(changes []Change, s Span) (wants, paused, ok bool) {
	for _, c := range changes {
		if c.From > s.To {
			break
		}
		if c.Meets(s) {
			return false, false, false
		}
		switch c.Kind {
		case Create, Want:
			wants = true
		case Refuse, Delete:
			wants = false
		case Pause:
			paused = true
		case Resume:
			paused = false
		}
	}
	return wants, paused, true
}

// changesOf sorts the changes by endpoint and time.
func (h *History) changesOf() map[string][]Change {
	of := map[string][]Change{}
	for _, c := range h.Changes {
		of[c.Endpoint] = append(of[c.Endpoint], c)
	}
	for _, list := range of {
		slices.SortFunc(list, func(a, b Change) int { return int(a.From - b.From) })
	}
	return of
}

// arrivalsOf sorts the arrivals by endpoint, key and time.
func (h *History) arrivalsOf() map[string]map[string][]Arrival {
	of := map[string]map[string][]Arrival{}
	for _, a := range h.Arrivals {
		if of[a.Endpoint] == nil {
			of[a.Endpoint] = map[string][]Arrival{}
		}
		of[a.Endpoint][a.Key] = append(of[a.Endpoint][a.Key], a)
	}
	for _, keys := range of {
		for _, list := range keys {
			slices.SortFunc(list, func(a, b Arrival) int { return int(a.From - b.From) })
		}
	}
	return of
}

// Delivered checks that every acknowledged event came to every endpoint that wanted it when it was accepted. Endpoints that were deleted
// later are left out, since their deliveries were cancelled.
func (h *History) Delivered() (losses []string, checked int) {
	events, changes, arrivals := h.events(), h.changesOf(), h.arrivalsOf()
	keys := slices.Sorted(maps.Keys(events))
	for _, rule := range h.Rules {
		list := changes[rule.Endpoint]
		if slices.ContainsFunc(list, func(c Change) bool { return c.Kind == Delete }) {
			continue
		}
		for _, key := range keys {
			e := events[key]
			wants, _, ok := certainly(list, e.span)
			if !e.acknowledged || !ok || !wants || !strings.HasPrefix(e.kind, rule.Types) {
				continue
			}
			checked++
			if !slices.ContainsFunc(arrivals[rule.Endpoint][key], Arrival.taken) {
				losses = append(losses, fmt.Sprintf("%s was accepted between %s and %s and never came to %s", key, e.span.From, e.span.To, rule.Endpoint))
			}
		}
	}
	return losses, checked
}

func (a Arrival) taken() bool { return a.Status >= 200 && a.Status < 300 }

// Unwanted checks that no event came to an endpoint that certainly did not want it when it was accepted, or that was paused since before
// it was posted.
func (h *History) Unwanted() (violations []string) {
	events, changes := h.events(), h.changesOf()
	for _, a := range h.Arrivals {
		e := events[a.Key]
		if e == nil {
			continue // an event of the server's own
		}
		list := changes[a.Endpoint]
		if wants, _, ok := certainly(list, e.span); ok && !wants {
			violations = append(violations, fmt.Sprintf("%s, posted from %s to %s, came to %s, which did not want it", a.Key, e.span.From, e.span.To, a.Endpoint))
		}
		if _, paused, ok := certainly(list, Span{e.span.From, a.From}); ok && paused {
			violations = append(violations, fmt.Sprintf("%s, posted at %s, came to %s at %s, which was paused", a.Key, e.span.From, a.Endpoint, a.From))
		}
	}
	return violations
}

// A Duplicate is a request that came although an earlier one was answered with success.
type Duplicate struct {
	First, Again Arrival
	Fault        *Fault // that explains it; nil: none does
}

// Kind is that of the fault, or empty.
func (d *Duplicate) Kind() string {
	if d.Fault == nil {
		return ""
	}
	return d.Fault.Kind
}

// Duplicates lists the requests that came again, each with a fault of the first request's node between the two, if there was one.
func (h *History) Duplicates() (duplicates []Duplicate) {
	arrivals := h.arrivalsOf()
	for _, rule := range h.Rules {
		if rule.Impatient {
			delete(arrivals, rule.Endpoint)
		}
	}
	for _, keys := range arrivals {
		for _, list := range keys {
			for i := 1; i < len(list); i++ {
				if first := list[i-1]; first.taken() {
					fault := h.explain(Torn, first.Node, Span{first.From, list[i].From})
					if fault == nil {
						fault = h.zombie(&list[i])
					}
					duplicates = append(duplicates, Duplicate{first, list[i], fault})
				}
			}
		}
	}
	return duplicates
}

// zombie finds the freeze from which a node woke up with the request half sent; another node has sent the delivery meanwhile. The request may arrive
// when the node is already ready again.
func (h *History) zombie(a *Arrival) *Fault {
	for i := range h.Faults {
		if f := &h.Faults[i]; f.Kind == Freeze && f.Does(Torn, a.Node, Span{a.From - slack, a.To}) {
			return f
		}
	}
	return nil
}

// explain finds a fault that may have done so much harm to the node in the span.
func (h *History) explain(harm Harm, node string, s Span) *Fault {
	for i := range h.Faults {
		if h.Faults[i].Does(harm, node, s) {
			return &h.Faults[i]
		}
	}
	return nil
}

// Refused lists posts without success that no fault of their node explains. Other nodes' faults must not be seen.
func (h *History) Refused() (refused []string) {
	posts := map[string][]Post{}
	for _, p := range h.Posts {
		posts[p.Key] = append(posts[p.Key], p)
	}
	for _, p := range h.Posts {
		switch p.Status {
		case accepted, conflict:
			continue
		case busy:
			if slices.ContainsFunc(posts[p.Key], func(o Post) bool { return o != p && o.underWay(p.Span) }) {
				continue
			}
		}
		if h.explain(Away, p.Node, p.Span) == nil {
			refused = append(refused, fmt.Sprintf("%s, posted to %s from %s to %s: status %d", p.Key, p.Node, p.From, p.To, p.Status))
		}
	}
	return refused
}

// underWay reports whether a node may have been busy with the post in the span. A post that a fault cut off may be so after the answer.
func (p *Post) underWay(s Span) bool {
	return p.Meets(s) || p.To < s.From && (p.Status == unknown || p.Status >= 500)
}

// Failed lists requests through the balancer that failed although no fault explains it.
func (h *History) Failed() (failed []string) {
	for _, f := range h.Failures {
		if h.explain(Away, balancer, f.Span) == nil {
			failed = append(failed, fmt.Sprintf("%s through the balancer from %s to %s: status %d: %s", f.Request, f.From, f.To, f.Status, f.Detail))
		}
	}
	return failed
}

const (
	busy     = 409 // another request with the same key is under way
	conflict = 422 // another request had the key
)

// refusedSince reports whether a post that began since then was refused.
func (h *History) refusedSince(from time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.Posts, func(p Post) bool { return p.From >= from && p.Status >= 500 })
}

// slack is how much later a request may arrive than it started. A machine that is slower for a moment has a fault Stall.
const slack = 2 * time.Second

// Paced checks the rates of endpoints. A node counts the starts of requests and the receiver sees their arrivals, so that Paced looks at spans
// that are long beside the slack, and leaves out requests of frozen nodes.
func (h *History) Paced() (violations []string) {
	for _, rule := range h.Rules {
		if rule.Count == 0 {
			continue
		}
		window := max(5*time.Second, rule.Per-slack)
		allowed := rule.Count * int((window+slack+rule.Per-1)/rule.Per)
		var starts []time.Duration
		for _, a := range h.Arrivals {
			if a.Endpoint == rule.Endpoint && !h.late(&a) {
				starts = append(starts, a.From)
			}
		}
		slices.Sort(starts)
		for i := allowed; i < len(starts); i++ {
			if span := starts[i] - starts[i-allowed]; span < window {
				violations = append(violations, fmt.Sprintf("%s got %d requests within %s until %s; at most %d may start within %s",
					rule.Endpoint, allowed+1, span, starts[i], rule.Count, rule.Per))
			}
		}
	}
	return violations
}

// late reports whether a request may have started long before it arrived.
func (h *History) late(a *Arrival) bool {
	return slices.ContainsFunc(h.Faults, func(f Fault) bool {
		return (f.Kind == Freeze || f.Kind == Stall) && f.Does(Torn, a.Node, a.Span)
	})
}

// Flat checks that no process grows without end: the median of its memory in the last third of its life is at most twice that in the first third,
// beside 64 MiB for caches that fill up.
func (h *History) Flat() (violations []string) {
	type life struct {
		node    string
		process int
	}
	of := map[life][]int64{}
	for _, m := range h.Memories {
		l := life{m.Node, m.Process}
		of[l] = append(of[l], m.Bytes)
	}
	for l, sizes := range of {
		third := len(sizes) / 3
		if third < 5 {
			continue // too short a life
		}
		slices.Sort(sizes[:third])
		slices.Sort(sizes[len(sizes)-third:])
		if first, last := sizes[third/2], sizes[len(sizes)-third+third/2]; last > 2*first+64<<20 {
			violations = append(violations, fmt.Sprintf("process %d of %s grew from %d MiB to %d MiB", l.process, l.node, first>>20, last>>20))
		}
	}
	return violations
}
