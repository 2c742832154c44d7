package dispatch

import (
	"github.com/godwit-hq/godwit/internal/filter"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Verdict says whether an event goes to an endpoint, and by which of its settings.
type Verdict string

// The verdicts.
const (
	Selected      Verdict = "selected"
	OtherType     Verdict = "type"      // no pattern selects the type
	OwnType       Verdict = "own-type"  // only "*" does, which leaves out the server's own events
	OtherValue    Verdict = "attribute" // the filter does not allow an attribute's value, or the event lacks the attribute
	OtherContent  Verdict = "content"   // the content filter does not let it pass
	SkippedPaused Verdict = "paused"    // it is paused, and its policy skips events meanwhile
)

// A Judgement is the verdict for an endpoint.
type Judgement struct {
	Verdict   Verdict
	Pattern   string      // that selects the type
	Attribute string      // of OtherValue: the attribute
	Miss      filter.Miss // of OtherContent: the condition that is not met
	Endpoint  *godwit.Endpoint
	Skips     bool // its policy skips events while the endpoint is paused
}

// Judge says whether an event would go to an endpoint now, by the rules of Match. It returns false if the tenant has no such endpoint in memory.
func (d *Dispatcher) Judge(id godwit.EndpointID, event *godwit.Event) (Judgement, bool) {
	eventType, attributes := event.Type, event.Attributes
	l := d.TenantLane(event.TenantID, id)
	if l == nil {
		return Judgement{}, false
	}
	t := l.Target()
	m := matcher{l, &t.Endpoint}
	j := Judgement{Endpoint: m.endpoint, Skips: t.Policy.SkipWhilePaused, Pattern: m.endpoint.Pattern(eventType)}
	byName := d.index.byNameOnly(eventType)
	switch {
	case m.selects(eventType, attributes, byName):
		j.Verdict = Selected
		if byName {
			j.Pattern = m.endpoint.NamedPattern(eventType)
		}
		missed := false
		if t.Content != nil {
			j.Miss, missed = t.Content.Explain(filter.Open(event))
		}
		switch {
		case missed:
			j.Verdict = OtherContent
		case skips(t):
			j.Verdict = SkippedPaused
		}
	case j.Pattern == "":
		j.Verdict = OtherType
	case byName && m.endpoint.NamedPattern(eventType) == "":
		j.Verdict = OwnType
	default:
		j.Verdict, j.Attribute = OtherValue, m.endpoint.Filter.Mismatch(attributes)
	}
	return j, true
}
