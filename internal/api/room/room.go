// Package room counts what requests hold at once, by tenant.
//
//	request ─► room for it? ─► served ─► its room is free again
//	               └─ no: 429 when the tenant has its share, 503 when all have theirs
//
// A tenant that takes all of its share slows itself alone; all tenants together cannot take the machine's memory. It counts,
// and keeps nobody waiting.
package room

import (
	"net/http"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Bounds of request bodies.
const (
	maxBodies      = 128 << 20 // bytes of a tenant's
	maxBodiesOfAll = 512 << 20 // bytes of all tenants'
	uncounted      = 64 << 10  // bodies up to this length cost less than their connections
)

// A Room is so much, for each tenant and for all of them.
type Room struct {
	each, all int64

	mu    sync.Mutex
	taken map[godwit.TenantID]int64
	total int64
}

// New makes a room.
func New(each, all int64) *Room {
	return &Room{each: each, all: all, taken: map[godwit.TenantID]int64{}}
}

// ForBodies makes the room of the bodies of requests. One is enough for all APIs: it is one machine's memory.
func ForBodies() *Room { return New(maxBodies, maxBodiesOfAll) }

// take reports which bound it would break, if any; then nothing is taken.
func (m *Room) take(tenant godwit.TenantID, n int64) (overShare, overAll bool) {
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

// Leave gives back what was taken.
func (m *Room) Leave(tenant godwit.TenantID, n int64) {
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

// Enter takes a place for something that lasts. Leave gives back one.
func (m *Room) Enter(tenant godwit.TenantID, what string) error {
	switch overShare, overAll := m.take(tenant, 1); {
	case overShare:
		return problem.TooManyRequests.With("a tenant may have %d %s open at once", m.each, what)
	case overAll:
		return problem.Unavailable.With("too many %s are open", what)
	}
	return nil
}

// Body takes room for the body of a request, of at most limit bytes, and returns how much to give back after the answer.
func (m *Room) Body(r *http.Request, tenant godwit.TenantID, limit int64) (int64, error) {
	n := r.ContentLength
	if n >= 0 && n <= uncounted || n > limit { // a longer one will be refused unread
		return 0, nil
	}
	if n < 0 {
		n = limit
	}
	switch overShare, overAll := m.take(tenant, n); {
	case overShare:
		return 0, problem.TooManyRequests.With("a tenant may have %d bytes of request bodies under way at once", m.each)
	case overAll:
		return 0, problem.Unavailable.With("too many large requests are under way")
	}
	return n, nil
}
