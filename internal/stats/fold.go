package stats

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Merger merges log rows.
type Merger struct {
	segments map[segmentKey]*Segment
}

type segmentKey struct {
	tenant godwit.TenantID
	minute int64
}

// Add adds a log row, or nothing of it if it is damaged.
func (m *Merger) Add(row []byte) error {
	if err := Scan(row, 0, func(*Segment) bool { return false }, nil); err != nil {
		return err
	}
	if m.segments == nil {
		m.segments = map[segmentKey]*Segment{}
	}
	var into *Segment
	return Scan(row, AllParts, func(s *Segment) bool {
		key := segmentKey{s.Tenant, s.Minute}
		if into = m.segments[key]; into == nil {
			into = &Segment{Tenant: s.Tenant, Minute: s.Minute}
			m.segments[key] = into
		}
		into.Events += s.Events
		return true
	}, func(_ *Segment, e *Entry) {
		sum := into.entry(e.Endpoint)
		sum.Counts.Add(e.Counts)
		sum.Latency.Merge(e.Latency)
		sum.Causes.merge(e.Causes)
	})
}

// Rows returns the sum as log rows, each with at most limit entries, or segments if these have none.
func (m *Merger) Rows(limit int) (rows [][]byte) {
	list := make([]*Segment, 0, len(m.segments))
	for _, s := range m.segments {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Segment) int {
		return cmp.Or(bytes.Compare(a.Tenant[:], b.Tenant[:]), cmp.Compare(a.Minute, b.Minute))
	})
	var row []byte
	left := limit
	for _, s := range list {
		slices.SortFunc(s.Entries, func(a, b Entry) int { return bytes.Compare(a.Endpoint[:], b.Endpoint[:]) })
		s.places = nil
		for rest := *s; ; {
			if left <= 0 {
				rows, row, left = append(rows, row), nil, limit
			}
			part := rest
			part.Entries = rest.Entries[:min(left, len(rest.Entries))]
			row = part.Append(row)
			left -= max(len(part.Entries), 1)
			rest.Events, rest.Entries = 0, rest.Entries[len(part.Entries):]
			if len(rest.Entries) == 0 {
				break
			}
		}
	}
	if len(row) > 0 {
		rows = append(rows, row)
	}
	return rows
}

// A Delta is what a log row adds to one page.
type Delta struct {
	Key
	slots []slotDelta
}

type slotDelta struct {
	slot int64
	Entry
}

func (d *Delta) slot(slot int64) *Entry {
	for i := range d.slots {
		if d.slots[i].slot == slot {
			return &d.slots[i].Entry
		}
	}
	d.slots = append(d.slots, slotDelta{slot: slot})
	return &d.slots[len(d.slots)-1].Entry
}

// An Owner is what a fold needs to know about a tenant.
type Owner struct {
	Environment godwit.EnvironmentID
	Deleted     bool
}

// Deltas returns what a log row adds to pages, in the order of keys. A deleted tenant has no pages; what it did still counts for its environment and the
// server. Unknown tenants count for the server alone.
func Deltas(row []byte, owners map[godwit.TenantID]Owner) ([]*Delta, error) {
	deltas := map[Key]*Delta{}
	add := func(minute int64, k Key, e *Entry) {
		at := minute * 60
		for _, level := range Levels {
			k.Level, k.Chunk = level, level.Chunk(at)
			d := deltas[k]
			if d == nil {
				d = &Delta{Key: k}
				deltas[k] = d
			}
			into := d.slot((at - level.chunkBegin(k.Chunk)) / level.Seconds())
			into.Counts.Add(e.Counts)
			into.Latency.Merge(e.Latency)
			if k.Kind == OfEndpoint {
				into.Causes.merge(e.Causes)
			}
		}
	}
	total := func(s *Segment, e *Entry) {
		owner, known := owners[s.Tenant]
		add(s.Minute, Key{Kind: OfServer}, e)
		if !known {
			return
		}
		add(s.Minute, Key{Kind: OfEnvironment, Owner: owner.Environment}, e)
		if !owner.Deleted {
			add(s.Minute, Key{Kind: OfTenant, Owner: s.Tenant}, e)
		}
	}
	err := Scan(row, AllParts, func(s *Segment) bool {
		if s.Events != 0 {
			total(s, &Entry{Counts: Counts{Events: s.Events}})
		}
		return true
	}, func(s *Segment, e *Entry) {
		if owner, known := owners[s.Tenant]; known && !owner.Deleted {
			add(s.Minute, Key{Kind: OfEndpoint, Owner: s.Tenant, Endpoint: e.Endpoint}, e)
		}
		sum := *e
		sum.Events = 0 // a tenant's events are counted as such, whatever the number of their deliveries
		if sum.Counts != (Counts{}) {
			total(s, &sum)
		}
	})
	if err != nil {
		return nil, err
	}
	list := make([]*Delta, 0, len(deltas))
	for _, d := range deltas {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *Delta) int { return a.Key.compare(&b.Key) })
	return list, nil
}

func (k *Key) compare(o *Key) int {
	return cmp.Or(cmp.Compare(k.Level, o.Level), cmp.Compare(k.Chunk, o.Chunk), cmp.Compare(k.Kind, o.Kind),
		bytes.Compare(k.Owner[:], o.Owner[:]), bytes.Compare(k.Endpoint[:], o.Endpoint[:]))
}

// TenantsOf lists the tenants of a log row.
func TenantsOf(row []byte) (list []godwit.TenantID, err error) {
	err = Scan(row, 0, func(s *Segment) bool {
		if !slices.Contains(list, s.Tenant) {
			list = append(list, s.Tenant)
		}
		return false
	}, nil)
	return list, err
}

// HasLatency reports whether the delta adds latencies.
func (d *Delta) HasLatency() bool {
	for i := range d.slots {
		if len(d.slots[i].Latency) > 0 {
			return true
		}
	}
	return false
}

// AddTo adds the delta to a stored page. A part of the page that is damaged begins anew; damaged reports it.
func (d *Delta) AddTo(p *Page) (damaged bool) {
	change := func(part *[]byte, slot int64, fn func(old *reader, b []byte) []byte) {
		fresh, err := setSlot(*part, slot, fn)
		if err != nil {
			damaged = true
			fresh, _ = setSlot(nil, slot, fn)
		}
		*part = fresh
	}
	p.Key = d.Key
	for i := range d.slots {
		s := &d.slots[i]
		begin := d.Level.chunkBegin(d.Chunk) + s.slot*d.Level.Seconds()
		change(&p.Counts, s.slot, func(old *reader, b []byte) []byte {
			sum := s.Counts
			if len(old.rest) > 0 {
				sum.Add(old.counts())
			}
			return sum.append(b)
		})
		if len(s.Latency) > 0 {
			change(&p.Latency, s.slot, func(old *reader, b []byte) []byte {
				var sum Sketch
				if len(old.rest) > 0 {
					old.sketch(&sum)
				}
				sum.Merge(s.Latency)
				return sum.append(b)
			})
		}
		if len(s.Causes) > 0 {
			change(&p.Causes, s.slot, func(old *reader, b []byte) []byte {
				var sum Causes
				if len(old.rest) > 0 {
					sum = old.slotCauses(begin)
				}
				sum.merge(s.Causes)
				return appendSlotCauses(sum, b, begin)
			})
		}
	}
	return damaged
}

// appendSlotCauses encodes causes with times relative to a slot that may begin after some of them.
func appendSlotCauses(c Causes, b []byte, begin int64) []byte {
	first := begin
	for _, s := range c {
		first = min(first, s.First)
	}
	return c.append(appendNumber(b, begin-first), first)
}

func (r *reader) slotCauses(begin int64) (c Causes) {
	first := begin - r.number()
	r.causes(&c, first)
	return c
}
