package stats

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Span is a range of whole slots of a level, in seconds since 1970. It includes Since and excludes Until.
type Span struct {
	Level        Level
	Since, Until int64
}

// Chunks returns the first and the last page of the span.
func (s Span) Chunks() (first, last int64) { return s.Level.Chunk(s.Since), s.Level.Chunk(s.Until - 1) }

// slots returns the first and the last slot of a page that the span has.
func (s Span) slots(chunk int64) (first, last int64) {
	begin := s.Level.chunkBegin(chunk)
	return (s.Since - begin) / s.Level.Seconds(), (s.Until - 1 - begin) / s.Level.Seconds()
}

// Cover divides a range of whole slots of a level into few spans: long slots in the middle, short ones at the ends.
func Cover(since, until int64, finest Level) (spans []Span) {
	for level := finest; level <= Day && since < until; level++ {
		if level == Day {
			return append(spans, Span{level, since, until})
		}
		next := (level + 1).Seconds()
		first, last := (since+next-1)/next*next, until/next*next
		if first >= last {
			return append(spans, Span{level, since, until})
		}
		if since < first {
			spans = append(spans, Span{level, since, first})
		}
		if last < until {
			spans = append(spans, Span{level, last, until})
		}
		since, until = first, last
	}
	return spans
}

// A Selection says which pages to read.
type Selection struct {
	Kind        Kind
	Owner       [16]byte             // environment or tenant; zero: the server, or all tenants
	Environment godwit.EnvironmentID // of all tenants: only those of this environment; zero: all
	Endpoints   []godwit.EndpointID  // of OfEndpoint: only these; empty: all
	Tenants     []godwit.TenantID    // of OfTenant without an owner: only these; empty: all
	Spans       []Span
	Parts       Parts
}

// Many reports whether the selection is about all tenants.
func (s *Selection) Many() bool { return s.Owner == [16]byte{} && s.Kind != OfServer }

// NeedsOwners reports whether a reader must know the environments of tenants.
func (s *Selection) NeedsOwners() bool { return s.Many() || s.Kind == OfEnvironment }

// Has reports whether a tenant's rows belong to the selection. Only selections that need owners ask for it.
func (s *Selection) Has(tenant godwit.TenantID, owners map[godwit.TenantID]Owner) bool {
	o, known := owners[tenant]
	switch {
	case s.Kind == OfEnvironment:
		return known && o.Environment == s.Owner
	case !known || o.Deleted:
		return false
	}
	return s.Environment.IsZero() || o.Environment == s.Environment
}

// distinct returns the endpoints without those named again: a store may read the pages of each by itself.
func distinct(list []godwit.EndpointID) (once []godwit.EndpointID) {
	for _, id := range list {
		if !slices.Contains(once, id) {
			once = append(once, id)
		}
	}
	return once
}

// A Snapshot is what a store has besides pages.
type Snapshot struct {
	Began  time.Time // when the history begins; zero: it has not begun
	Log    [][]byte  // rows that are not folded
	Owners map[godwit.TenantID]Owner
}

// Store reads pages. It passes each to each, and returns the rest of the same snapshot.
type Store interface {
	ReadStats(ctx context.Context, s Selection, each func(*Page) error) (*Snapshot, error)
}

// Cell holds what is known of one slot, or of several.
type Cell struct {
	Counts
	Latency Sketch
}

// A Series is what is known of an endpoint, a tenant, an environment or the server, slot by slot.
type Series struct {
	Tenant   godwit.TenantID   // zero: several
	Endpoint godwit.EndpointID // zero: all
	Total    Cell
	Points   []Cell // one for each slot of the range
}

// A Range is a time range in slots of one level.
type Range struct {
	Level        Level
	Since, Until int64
}

// Slots returns the number of slots.
func (r Range) Slots() int { return int((r.Until - r.Since) / r.Level.Seconds()) }

// A seriesKey tells series apart.
type seriesKey struct {
	tenant   godwit.TenantID
	endpoint godwit.EndpointID
}

// keyOf returns the series that an entry of the log belongs to.
func (s *Selection) keyOf(tenant godwit.TenantID, endpoint godwit.EndpointID) seriesKey {
	switch s.Kind {
	case OfTenant:
		return seriesKey{tenant: tenant}
	case OfEndpoint:
		return seriesKey{tenant, endpoint}
	}
	return seriesKey{}
}

// wants reports whether the log of a tenant concerns the selection.
func (s *Selection) wants(tenant godwit.TenantID, owners map[godwit.TenantID]Owner) bool {
	switch {
	case s.Kind == OfServer:
		return true
	case s.NeedsOwners():
		return s.Has(tenant, owners) && (len(s.Tenants) == 0 || slices.Contains(s.Tenants, tenant))
	}
	return tenant == s.Owner
}

// scanLog passes what log rows have within the range to add. Rows that cannot be decoded are left out; the fold reports them.
func (s *Selection) scanLog(log [][]byte, owners map[godwit.TenantID]Owner, since, until int64, add func(seriesKey, int64, *Entry)) {
	var total Entry
	for _, row := range log {
		_ = Scan(row, s.Parts, func(seg *Segment) bool {
			at := seg.Minute * 60
			if at < since || at >= until || !s.wants(seg.Tenant, owners) {
				return false
			}
			if s.Kind != OfEndpoint && seg.Events != 0 {
				total = Entry{Counts: Counts{Events: seg.Events}}
				add(s.keyOf(seg.Tenant, godwit.EndpointID{}), at, &total)
			}
			return true
		}, func(seg *Segment, e *Entry) {
			if s.Kind == OfEndpoint {
				if len(s.Endpoints) > 0 && !slices.Contains(s.Endpoints, e.Endpoint) {
					return
				}
			} else {
				e.Events = 0
			}
			add(s.keyOf(seg.Tenant, e.Endpoint), seg.Minute*60, e)
		})
	}
}

// Read returns the series of a selection, with a point for each slot of the range.
func Read(ctx context.Context, st Store, sel Selection, r Range) (list []*Series, began time.Time, err error) {
	sel.Spans, sel.Parts = []Span{{r.Level, r.Since, r.Until}}, CountsPart|LatencyPart
	sel.Endpoints = distinct(sel.Endpoints)
	series := map[seriesKey]*Series{}
	of := func(k seriesKey) *Series {
		s := series[k]
		if s == nil {
			s = &Series{Tenant: k.tenant, Endpoint: k.endpoint, Points: make([]Cell, r.Slots())}
			series[k] = s
			list = append(list, s)
		}
		return s
	}
	snapshot, err := st.ReadStats(ctx, sel, func(p *Page) error {
		s := of(sel.keyOf(p.Owner, p.Endpoint))
		first, last := sel.Spans[0].slots(p.Chunk)
		at := (p.Level.chunkBegin(p.Chunk) - r.Since) / r.Level.Seconds() // of the page's first slot; may be negative
		err := eachSlot(p.Counts, first, last, func(slot int64, body []byte) error {
			b := reader{rest: body}
			s.Points[at+slot].Counts.Add(b.counts())
			return nil
		})
		if err != nil {
			return nil // the fold begins a damaged page anew
		}
		_ = eachSlot(p.Latency, first, last, func(slot int64, body []byte) error {
			b := reader{rest: body}
			b.sketch(&s.Points[at+slot].Latency)
			return nil
		})
		return nil
	})
	if err != nil {
		return nil, began, err
	}
	sel.scanLog(snapshot.Log, snapshot.Owners, r.Since, r.Until, func(k seriesKey, at int64, e *Entry) {
		cell := &of(k).Points[(at-r.Since)/r.Level.Seconds()]
		cell.Counts.Add(e.Counts)
		cell.Latency.Merge(e.Latency)
	})
	for _, s := range list {
		for i := range s.Points {
			s.Total.Counts.Add(s.Points[i].Counts)
			s.Total.Latency.Merge(s.Points[i].Latency)
		}
	}
	sortSeries(list)
	return list, snapshot.Began, nil
}

// sortSeries puts the series with the most failed attempts first.
func sortSeries(list []*Series) {
	slices.SortFunc(list, func(a, b *Series) int {
		return cmp.Or(cmp.Compare(b.Total.Failed, a.Total.Failed), cmp.Compare(b.Total.Attempts(), a.Total.Attempts()), cmp.Compare(b.Total.Events, a.Total.Events),
			bytes.Compare(a.Tenant[:], b.Tenant[:]), bytes.Compare(a.Endpoint[:], b.Endpoint[:]))
	})
}

// Top returns the series of a selection with the most failed attempts, and the number of all. It adds up counts first, in slots as long as possible, and
// reads points and latencies of the first ones alone.
func Top(ctx context.Context, st Store, sel Selection, r Range, limit int) (list []*Series, all int, began time.Time, err error) {
	sel.Endpoints = distinct(sel.Endpoints)
	rough := sel
	rough.Spans, rough.Parts = Cover(r.Since, r.Until, r.Level), CountsPart
	totals := map[seriesKey]*Series{}
	of := func(k seriesKey) *Series {
		s := totals[k]
		if s == nil {
			s = &Series{Tenant: k.tenant, Endpoint: k.endpoint}
			totals[k] = s
		}
		return s
	}
	snapshot, err := st.ReadStats(ctx, rough, func(p *Page) error {
		s := of(sel.keyOf(p.Owner, p.Endpoint))
		for _, span := range rough.Spans {
			first, last := span.slots(p.Chunk)
			if span.Level != p.Level || last < 0 || first >= p.Level.slots() {
				continue
			}
			_ = eachSlot(p.Counts, first, last, func(_ int64, body []byte) error {
				b := reader{rest: body}
				s.Total.Counts.Add(b.counts())
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, 0, began, err
	}
	rough.scanLog(snapshot.Log, snapshot.Owners, r.Since, r.Until, func(k seriesKey, _ int64, e *Entry) { of(k).Total.Counts.Add(e.Counts) })
	for k, s := range totals {
		if s.Total.Counts != (Counts{}) {
			list = append(list, s)
		} else {
			delete(totals, k)
		}
	}
	sortSeries(list)
	all = len(list)
	if list = list[:min(limit, all)]; len(list) == 0 {
		return list, all, snapshot.Began, nil
	}
	sel.Endpoints, sel.Tenants = nil, nil // those that were wanted are in the list, if they have counts
	for _, s := range list {
		if sel.Kind == OfEndpoint {
			sel.Endpoints = append(sel.Endpoints, s.Endpoint)
		} else {
			sel.Tenants = append(sel.Tenants, s.Tenant)
		}
	}
	if list, began, err = Read(ctx, st, sel, r); err != nil {
		return nil, 0, began, err
	}
	return list, all, began, nil
}

// A Failure is a cause of failed attempts, with where and when it was seen.
type Failure struct {
	Cause
	Seen
	Endpoints int               // how many
	Tenant    godwit.TenantID   // of Example
	Example   godwit.EndpointID // the endpoint with the most
	most      int64
}

// Failures returns the causes of failed attempts of a selection of endpoints, the most frequent first.
func Failures(ctx context.Context, st Store, sel Selection, r Range) (list []*Failure, began time.Time, err error) {
	sel.Kind, sel.Spans, sel.Parts = OfEndpoint, Cover(r.Since, r.Until, r.Level), CausesPart
	sel.Endpoints = distinct(sel.Endpoints)
	seen := map[seriesKey]*Causes{}
	add := func(k seriesKey, c Causes) {
		if seen[k] == nil {
			seen[k] = &Causes{}
		}
		seen[k].merge(c)
	}
	snapshot, err := st.ReadStats(ctx, sel, func(p *Page) error {
		for _, span := range sel.Spans {
			first, last := span.slots(p.Chunk)
			if span.Level != p.Level || last < 0 || first >= p.Level.slots() {
				continue
			}
			_ = eachSlot(p.Causes, first, last, func(slot int64, body []byte) error {
				b := reader{rest: body}
				c := b.slotCauses(p.Level.chunkBegin(p.Chunk) + slot*p.Level.Seconds())
				add(sel.keyOf(p.Owner, p.Endpoint), c)
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, began, err
	}
	sel.scanLog(snapshot.Log, snapshot.Owners, r.Since, r.Until, func(k seriesKey, _ int64, e *Entry) {
		if len(e.Causes) > 0 {
			add(k, e.Causes)
		}
	})
	failures := map[Cause]*Failure{}
	for k, causes := range seen {
		for _, c := range *causes {
			f := failures[c.Cause]
			if f == nil {
				f = &Failure{Cause: c.Cause}
				failures[c.Cause] = f
				list = append(list, f)
			}
			f.add(c.Seen)
			f.Endpoints++
			if c.Count > f.most || c.Count == f.most && bytes.Compare(k.endpoint[:], f.Example[:]) < 0 {
				f.most, f.Tenant, f.Example = c.Count, k.tenant, k.endpoint
			}
		}
	}
	slices.SortFunc(list, func(a, b *Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Status, b.Status))
	})
	return list, snapshot.Began, nil
}
