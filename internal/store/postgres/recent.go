package postgres

import (
	"sync"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

// recent remembers the heads of chains and the records in progress that this node stored last, so that Advance need not read
// them again: a node nearly always continues what it stored itself. What it remembers is only an assumption, which the
// database checks.
type recent struct {
	mu      sync.Mutex
	heads   map[string]evidence.Head
	records map[command.RecordID]*command.Record

	// After a wrong assumption the next transactions read first, more of them after each further wrong one: another node
	// then appends to the same chains.
	reads, penalty int
}

const (
	maxRecent  = 4096 // heads, and records; recent forgets all of them when there are more
	maxPenalty = 63
)

// assume returns the heads and records that the steps need, or nil if they have to be read: because one of them is not
// remembered, or because the steps have effects that must see the database.
func (m *recent) assume(now time.Time, steps []*command.Step) *command.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reads > 0 {
		m.reads--
		return nil
	}
	s := &command.Snapshot{Heads: map[string]evidence.Head{}, Records: map[command.RecordID]*command.Record{}}
	for _, step := range steps {
		head, known := m.heads[step.Tenant]
		if !known || !deferrable(now, step.Effects) {
			return nil
		}
		s.Heads[step.Tenant] = head
		if step.Key == "" {
			continue
		}
		id := command.RecordID{Tenant: step.Tenant, Key: step.Key}
		r := m.records[id]
		switch {
		case step.Expect == 0 && r != nil, step.Expect != 0 && (r == nil || r.Version != step.Expect):
			return nil
		case r != nil:
			s.Records[id] = r
		}
	}
	return s
}

// stored remembers a transaction that was committed. Its assumptions were right, if it made some.
func (m *recent) stored(t *transaction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.known != nil {
		m.penalty = 0
	}
	for _, head := range t.wrote.Heads { // a head that took no evidence may have been tampered with
		m.addHead(head)
	}
	for _, r := range t.wrote.Records {
		m.addRecord(r.Record)
	}
}

// grown remembers heads that another kind of transaction has moved.
func (m *recent) grown(heads []evidence.Head) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, head := range heads {
		m.addHead(head)
	}
}

func (m *recent) addHead(head evidence.Head) {
	if m.heads == nil || len(m.heads) >= maxRecent {
		m.heads = map[string]evidence.Head{}
	}
	m.heads[head.Tenant] = head
}

// addRecord keeps a record until it is terminal: then no further step is likely.
func (m *recent) addRecord(r *command.Record) {
	id := command.RecordID{Tenant: r.Tenant, Key: r.Key}
	if r.Status.Terminal() {
		delete(m.records, id)
		return
	}
	if m.records == nil || len(m.records) >= maxRecent {
		m.records = map[command.RecordID]*command.Record{}
	}
	m.records[id] = r
}

// forget drops what steps need, because a transaction failed and it is not known what is stored.
func (m *recent) forget(steps []*command.Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(steps)
}

func (m *recent) drop(steps []*command.Step) {
	for _, step := range steps {
		delete(m.heads, step.Tenant)
		delete(m.records, command.RecordID{Tenant: step.Tenant, Key: step.Key})
	}
}

// wrong drops what steps needed, which was not so any more, and makes the next transactions read first.
func (m *recent) wrong(steps []*command.Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(steps)
	m.penalty = min(2*m.penalty+1, maxPenalty)
	m.reads = m.penalty
}
