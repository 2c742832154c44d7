package native

import (
	"net/http"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/registry"
)

// What requests may hold at once. A tenant that takes all of its share slows itself alone; all tenants together cannot take
// the machine's memory.
const (
	maxStreams       = 64        // live feeds of a tenant
	maxExports       = 4         // exports of a tenant
	maxIntake        = 128 << 20 // bytes of a tenant's request bodies
	maxIntakeOfAll   = 512 << 20 // bytes of all request bodies
	uncountedIntake  = 64 << 10  // bodies up to this length cost less than their connections
	maxStreamsOfAll  = 4096
	maxExportsOfAll  = 64
	exportPageMemory = 8 << 20 // payloads of one page of an export
)

// room counts what is taken, by tenant.
type room struct {
	each, all int64

	mu    sync.Mutex
	taken map[godwit.TenantID]int64
	total int64
}

func newRoom(each, all int64) *room {
	return &room{each: each, all: all, taken: map[godwit.TenantID]int64{}}
}

// take reports which bound it would break, if any; then nothing is taken.
func (m *room) take(tenant godwit.TenantID, n int64) (overShare, overAll bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken[tenant]+n > m.each {
		return true, false
	}
	if m.total+n > m.all {
		return false, true
	}
	m.taken[tenant] += n
	m.total += n
	return false, false
}

func (m *room) leave(tenant godwit.TenantID, n int64) {
	if n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total -= n
	if m.taken[tenant] -= n; m.taken[tenant] == 0 {
		delete(m.taken, tenant)
	}
}

// enter takes a place for something that lasts.
func (m *room) enter(tenant godwit.TenantID, what string) error {
	switch overShare, overAll := m.take(tenant, 1); {
	case overShare:
		return problem.TooManyRequests.With("a tenant may have %d %s open at once", m.each, what)
	case overAll:
		return problem.Unavailable.With("too many %s are open", what)
	}
	return nil
}

// roomFor makes room for the body of a request, of at most limit bytes, and returns how much to give back after the answer.
func (s *server) roomFor(r *http.Request, c *registry.Caller, limit int64) (int64, error) {
	n := r.ContentLength
	if n >= 0 && n <= uncountedIntake || n > limit { // a longer one will be refused unread
		return 0, nil
	}
	if n < 0 {
		n = limit
	}
	switch overShare, overAll := s.intake.take(c.Tenant.ID, n); {
	case overShare:
		return 0, problem.TooManyRequests.With("a tenant may have %d bytes of request bodies under way at once", s.intake.each)
	case overAll:
		return 0, problem.Unavailable.With("too many large requests are under way")
	}
	return n, nil
}
