package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// members knows which nodes are alive. Only one process serves a database, so this is kept in memory: a beat writes nothing, and
// the owners of leases that an earlier process took are dead.
type members struct {
	now func() time.Time

	mu   sync.Mutex
	list map[string]*member // by name
}

type member struct {
	godwit.Member
	until time.Time // expiry of its leases
}

func newMembers(now func() time.Time) *members {
	if now == nil {
		now = clock.Real{}.Now
	}
	return &members{now: now, list: map[string]*member{}}
}

// claim makes n the process of its name.
func (m *members) claim(n *godwit.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.list[n.Name] = &member{Member: godwit.Member{Node: *n, State: godwit.NodeStarting, SeenAt: now}}
	m.list[n.Name].StartedAt = now
}

// announce extends the leases of the process; it reports false if another process has the name.
func (m *members) announce(n *godwit.Node, ttl time.Duration) bool {
	m.mu.Lock()
	_, known := m.list[n.Name]
	m.mu.Unlock()
	if !known {
		m.claim(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.list[n.Name]
	if x.Instance != n.Instance {
		return false
	}
	x.SeenAt = m.now()
	if until := x.SeenAt.Add(ttl); until.After(x.until) {
		x.until = until
	}
	return true
}

// expiry returns when the leases of an owner expire, and whether the owner is alive.
func (m *members) expiry(owner string) (until time.Time, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, _, _ := strings.Cut(owner, " ")
	x := m.list[name]
	if x == nil || x.Owner() != owner {
		return time.Time{}, false
	}
	return x.until, x.until.After(m.now())
}

func (m *members) all() (now time.Time, list []godwit.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.now()
	for _, x := range m.list {
		x.Left = max(x.until.Sub(now), 0)
		x.Alive = x.Left > 0
		list = append(list, x.Member)
	}
	slices.SortFunc(list, func(a, b godwit.Member) int { return strings.Compare(a.Name, b.Name) })
	return now, list
}

// Beat extends the leases of the process.
func (s *leases) Beat(ctx context.Context, b store.Beat) (*godwit.Cluster, error) {
	if !s.members.announce(&b.Node, b.TTL) {
		return nil, store.ErrFenced
	}
	s.members.mu.Lock()
	x := s.members.list[b.Node.Name]
	x.Load, x.State = b.Load, cmp.Or(b.State, godwit.NodeRunning)
	s.members.mu.Unlock()
	return s.Cluster(ctx)
}

// Cluster lists nodes and leases.
func (s *leases) Cluster(ctx context.Context) (*godwit.Cluster, error) {
	c := &godwit.Cluster{}
	err := s.read(ctx, "list leases", func(conn *conn) error {
		c.Leases = nil
		return conn.each(ctx, "SELECT shard, owner, epoch FROM leases ORDER BY shard", nil, func(r *rows) error {
			c.Leases = append(c.Leases, godwit.Lease{Shard: int(r.int(0)), Owner: r.text(1), Epoch: r.int(2)})
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range c.Leases {
		_, alive := s.members.expiry(c.Leases[i].Owner)
		c.Leases[i].Free = !alive
	}
	c.Now, c.Members = s.members.all()
	return c, nil
}
