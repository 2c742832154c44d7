package stats

import (
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// ErrDamaged reports bytes that are not a log row or a page, or are those of a later release.
var ErrDamaged = errors.New("stats cannot be decoded")

// logVersion is the first byte of every segment.
const logVersion = 1

// A Segment holds the counts of one tenant in one minute. A log row is a sequence of segments.
type Segment struct {
	Tenant  godwit.TenantID
	Minute  int64 // since 1970
	Events  int64 // accepted
	Entries []Entry
	places  map[godwit.EndpointID]int // of Entries; made when there are many
}

// An Entry holds the counts of an endpoint.
type Entry struct {
	Endpoint godwit.EndpointID
	Counts
	Latency Sketch
	Causes  Causes
}

// MinuteOf returns the minute of a time.
func MinuteOf(t time.Time) int64 { return t.Unix() / 60 }

// few is the number of entries that are searched one by one.
const few = 8

// entry returns the entry of an endpoint.
func (s *Segment) entry(id godwit.EndpointID) *Entry {
	if n := len(s.Entries); n > 0 && s.Entries[n-1].Endpoint == id {
		return &s.Entries[n-1]
	}
	if s.places == nil {
		for i := range s.Entries {
			if s.Entries[i].Endpoint == id {
				return &s.Entries[i]
			}
		}
		if len(s.Entries) >= few {
			s.places = make(map[godwit.EndpointID]int, 8*few)
			for i := range s.Entries {
				s.places[s.Entries[i].Endpoint] = i
			}
		}
	} else if at, ok := s.places[id]; ok {
		return &s.Entries[at]
	}
	if s.places != nil {
		s.places[id] = len(s.Entries)
	}
	s.Entries = append(s.Entries, Entry{Endpoint: id})
	return &s.Entries[len(s.Entries)-1]
}

// Delivery counts an event for an endpoint.
func (s *Segment) Delivery(id godwit.EndpointID) { s.entry(id).Events++ }

// Attempt counts an attempt for a delivery, and what became of the delivery.
func (s *Segment) Attempt(d *godwit.Delivery, a *godwit.Attempt) {
	e := s.entry(d.EndpointID)
	if d.Status.Dead() {
		e.Dead++
	}
	if a.Verdict.Outcome != godwit.Accepted {
		e.Failed++
		at := a.StartedAt.Add(a.Duration).Unix()
		e.Causes.Add(CauseOf(a), Seen{1, at, at})
		return
	}
	e.Acknowledged++
	// A replay of an old event would count its age.
	if d.Run.Trigger == godwit.TriggerAccept && !d.CreatedAt.IsZero() {
		e.Latency.Add(a.StartedAt.Add(a.Duration).Sub(d.CreatedAt))
	}
}

// Dead counts a delivery that became a dead letter without an attempt.
func (s *Segment) Dead(id godwit.EndpointID) { s.entry(id).Dead++ }

// Empty reports whether nothing was counted.
func (s *Segment) Empty() bool { return s.Events == 0 && len(s.Entries) == 0 }

// The parts that an entry has.
const (
	hasEvents = 1 << iota
	hasAcknowledged
	hasFailed
	hasDead
	hasLatency
	hasCauses
)

// Append appends the segment to a log row.
func (s *Segment) Append(b []byte) []byte {
	b = append(b, logVersion)
	b = appendNumber(b, s.Minute)
	b = append(b, s.Tenant[:]...)
	b = appendNumber(b, s.Events)
	b = appendNumber(b, int64(len(s.Entries)))
	for i := range s.Entries {
		b = s.Entries[i].append(b, s.Minute*60)
	}
	return b
}

func (e *Entry) append(b []byte, begin int64) []byte {
	b = append(b, e.Endpoint[:]...)
	at := len(b)
	b = append(b, 0)
	for i, n := range [...]int64{e.Events, e.Acknowledged, e.Failed, e.Dead} {
		if n != 0 {
			b[at] |= 1 << i
			b = appendNumber(b, n)
		}
	}
	if len(e.Latency) > 0 {
		b[at] |= hasLatency
		b = e.Latency.append(b)
	}
	if len(e.Causes) > 0 {
		b[at] |= hasCauses
		// An attempt may have ended before the minute of its commit.
		first := begin
		for _, c := range e.Causes {
			first = min(first, c.First)
		}
		b = appendNumber(b, begin-first)
		b = e.Causes.append(b, first)
	}
	return b
}

// Parts selects what is decoded.
type Parts uint8

// The parts.
const (
	CountsPart Parts = 1 << iota
	LatencyPart
	CausesPart
	AllParts = CountsPart | LatencyPart | CausesPart
)

// Scan decodes a log row. It passes each segment, without entries, to segment, and then the entries one by one to entry, unless segment returned
// false. The entry is reused.
func Scan(row []byte, parts Parts, segment func(*Segment) bool, entry func(*Segment, *Entry)) error {
	r := reader{rest: row}
	for len(r.rest) > 0 {
		if r.byte() != logVersion {
			return ErrDamaged
		}
		s := Segment{Minute: r.number()}
		s.Tenant = r.id()
		s.Events = r.number()
		n := r.number()
		if r.bad {
			return ErrDamaged
		}
		wanted := parts
		if !segment(&s) {
			wanted = 0
		}
		var e Entry
		for ; n > 0 && !r.bad; n-- {
			r.entry(&e, wanted, s.Minute*60)
			if wanted != 0 && !r.bad {
				entry(&s, &e)
			}
		}
		if r.bad {
			return ErrDamaged
		}
	}
	return nil
}

func (r *reader) entry(e *Entry, parts Parts, begin int64) {
	*e = Entry{Endpoint: r.id()}
	mask := r.byte()
	for i, n := range [...]*int64{&e.Events, &e.Acknowledged, &e.Failed, &e.Dead} {
		if mask&(1<<i) != 0 {
			*n = r.number()
		}
	}
	if mask&hasLatency != 0 {
		var s *Sketch
		if parts&LatencyPart != 0 {
			s = &e.Latency
		}
		r.sketch(s)
	}
	if mask&hasCauses != 0 {
		first := begin - r.number()
		var c *Causes
		if parts&CausesPart != 0 {
			c = &e.Causes
		}
		r.causes(c, first)
	}
	if mask >= hasCauses<<1 {
		r.fail()
	}
}
