package dispatch

import (
	"slices"
	"strings"
	"sync"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/filter"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// index finds the lanes that an event goes to. Reading takes no lock: a tenant's part is immutable and is replaced when one of
// its endpoints changes.
type index struct {
	mu      sync.Mutex // serialises writers
	lanes   sync.Map   // EndpointID → *Lane
	tenants sync.Map   // TenantID → *tenantIndex

	explicitMeta bool // the pattern "*" does not select webhook.* events
}

// tenantIndex maps event types to the lanes whose patterns name them, and the first segment of patterns with a wildcard to lanes, so
// that a match does not compare all endpoints of a large tenant. Most tenants have few endpoints: theirs are all compared, which takes no
// longer, and their index has no maps, which take most of its memory.
type tenantIndex struct {
	members []*Lane
	byType  map[string][]matcher
	byHead  map[string][]matcher // patterns like "order.*"
	any     []matcher            // patterns "*"; of a small tenant all
}

// fewPatterns is how many patterns the endpoints of a small tenant have at most.
const fewPatterns = 16

type matcher struct {
	lane     *Lane
	endpoint *godwit.Endpoint
}

func (x *index) lane(id godwit.EndpointID) *Lane {
	v, ok := x.lanes.Load(id)
	if !ok {
		return nil
	}
	return v.(*Lane)
}

func (x *index) each(f func(*Lane)) {
	x.lanes.Range(func(_, v any) bool { f(v.(*Lane)); return true })
}

// put adds lanes or updates their patterns. It removes the lane of a deleted endpoint.
func (x *index) put(lanes ...*Lane) {
	x.mu.Lock()
	defer x.mu.Unlock()
	changed := map[godwit.TenantID]map[godwit.EndpointID]*Lane{}
	for _, l := range lanes {
		endpoint := &l.Target().Endpoint
		members := changed[endpoint.TenantID]
		if members == nil {
			members = x.members(endpoint.TenantID)
			changed[endpoint.TenantID] = members
		}
		if endpoint.Status == godwit.EndpointDeleted {
			delete(members, l.id)
			x.lanes.Delete(l.id)
		} else {
			members[l.id] = l
			x.lanes.Store(l.id, l)
		}
	}
	for tenant, members := range changed {
		if len(members) == 0 {
			x.tenants.Delete(tenant)
		} else {
			x.tenants.Store(tenant, newTenantIndex(members))
		}
	}
}

// members returns the lanes of a tenant.
func (x *index) members(id godwit.TenantID) map[godwit.EndpointID]*Lane {
	members := map[godwit.EndpointID]*Lane{}
	if v, ok := x.tenants.Load(id); ok {
		for _, l := range v.(*tenantIndex).members {
			members[l.id] = l
		}
	}
	return members
}

func newTenantIndex(members map[godwit.EndpointID]*Lane) *tenantIndex {
	ti := &tenantIndex{members: make([]*Lane, 0, len(members))}
	patterns := 0
	for _, l := range members {
		ti.members = append(ti.members, l)
		patterns += len(l.Target().Endpoint.Patterns)
	}
	if patterns <= fewPatterns {
		ti.any = make([]matcher, 0, len(members))
		for _, l := range ti.members {
			if t := l.Target(); !skips(t) {
				ti.any = append(ti.any, matcher{l, &t.Endpoint})
			}
		}
		return ti
	}
	ti.byType, ti.byHead = map[string][]matcher{}, map[string][]matcher{}
	for _, l := range ti.members {
		ti.add(l)
	}
	return ti
}

func (ti *tenantIndex) add(l *Lane) {
	t := l.Target()
	endpoint := &t.Endpoint
	if skips(t) {
		return
	}
	m := matcher{l, endpoint}
	if slices.Contains(endpoint.Patterns, "*") {
		ti.any = append(ti.any, m)
		return
	}
	var heads []string // of patterns with a wildcard
	for _, p := range endpoint.Patterns {
		if h := head(p); wild(p) && !slices.Contains(heads, h) {
			heads = append(heads, h)
			ti.byHead[h] = append(ti.byHead[h], m)
		}
	}
	for _, p := range endpoint.Patterns {
		if wild(p) || slices.Contains(heads, head(p)) {
			continue // a match finds the lane by the head, and must find it once
		}
		if list := ti.byType[p]; len(list) == 0 || list[len(list)-1].lane != l {
			ti.byType[p] = append(list, m)
		}
	}
}

// skips reports whether new events pass the endpoint by while it is paused (OJS-SUB-6).
func skips(t *attempt.Target) bool {
	return t.Endpoint.Status == godwit.EndpointPaused && t.Policy.SkipWhilePaused
}

func wild(pattern string) bool { return strings.HasSuffix(pattern, "*") }

func head(pattern string) string {
	h, _, _ := strings.Cut(pattern, ".")
	return h
}

// match returns the lanes whose patterns and attributes select an event.
func (x *index) match(tenant godwit.TenantID, eventType string, attributes map[string]string) []*Lane {
	v, ok := x.tenants.Load(tenant)
	if !ok {
		return nil
	}
	ti := v.(*tenantIndex)
	byName := x.byNameOnly(eventType)
	var lanes []*Lane
	for _, group := range [...][]matcher{ti.any, ti.byType[eventType], ti.byHead[head(eventType)]} {
		for _, m := range group {
			if m.selects(eventType, attributes, byName) {
				lanes = append(lanes, m.lane)
			}
		}
	}
	return lanes
}

// pass leaves only lanes whose content filters the event passes. It changes the list.
func pass(lanes []*Lane, event *godwit.Event) []*Lane {
	var document *filter.Document // one for all filters, so that the body is parsed once
	kept := lanes[:0]
	for _, l := range lanes {
		if content := l.Target().Content; content != nil {
			if document == nil {
				document = filter.Open(event)
			}
			if !content.Match(document) {
				continue
			}
		}
		kept = append(kept, l)
	}
	return kept
}

// byNameOnly reports whether an event goes only to endpoints whose patterns name it: the pattern "*" does not select the
// server's own events.
func (x *index) byNameOnly(eventType string) bool {
	return strings.HasPrefix(eventType, "godwit.") || x.explicitMeta && strings.HasPrefix(eventType, "webhook.")
}

func (m *matcher) selects(eventType string, attributes map[string]string, byName bool) bool {
	if !byName {
		return m.endpoint.Selects(eventType, attributes)
	}
	return m.endpoint.NamedPattern(eventType) != "" && m.endpoint.Filter.Match(attributes)
}
