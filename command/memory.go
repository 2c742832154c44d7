package command

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// A MemoryStore keeps everything in memory: for tests and for programs whose commands need not outlive them. Its effects are
// functions of type func() (any, error) and func() error, which it cannot undo.
type MemoryStore struct {
	mu      sync.Mutex
	records map[string]*Record
	chains  map[string][]evidence.Item
}

// NewMemoryStore makes an empty one.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{records: map[string]*Record{}, chains: map[string][]evidence.Item{}}
}

// Advance applies steps.
func (m *MemoryStore) Advance(_ context.Context, now time.Time, steps []*Step) ([]Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	results := make([]Result, len(steps))
	for i, s := range steps {
		results[i] = m.advance(now, s)
	}
	return results, nil
}

func (m *MemoryStore) advance(now time.Time, s *Step) Result {
	place := s.Tenant + "\x00" + s.Key
	last := m.records[place]
	if s.Key != "" {
		free := s.Expect == 0 && (last == nil || last.FreeAt(now))
		if !free && (last == nil || last.Version != s.Expect) {
			return Result{Stored: copied(last), Refused: true}
		}
	}
	var applied Applied
	if s.Key != "" {
		applied.Previous = copied(last)
	}
	for _, effect := range s.Effects {
		var v any
		switch f := effect.(type) {
		case func() (any, error):
			v, applied.Err = f()
		case func() error:
			applied.Err = f()
		}
		if applied.Err != nil {
			applied.Results = nil
			break
		}
		applied.Results = append(applied.Results, v)
	}
	change, err := s.Settle(applied)
	if err != nil {
		return Result{Err: err}
	}
	for _, entry := range change.Evidence {
		item, err := evidence.Link(m.head(s.Tenant), s.Tenant, entry)
		if err != nil {
			return Result{Err: err}
		}
		m.chains[s.Tenant] = append(m.chains[s.Tenant], item)
	}
	if change.Record != nil {
		m.records[place] = copied(change.Record)
		last = change.Record
	}
	if s.Key == "" {
		last = nil
	}
	return Result{Stored: copied(last), Applied: applied.Results}
}

func copied(r *Record) *Record {
	if r == nil {
		return nil
	}
	c := r.next()
	c.Version--
	return c
}

func (m *MemoryStore) head(tenant string) evidence.Head {
	chain := m.chains[tenant]
	if len(chain) == 0 {
		return evidence.Head{Tenant: tenant}
	}
	last := &chain[len(chain)-1]
	return evidence.Head{Tenant: tenant, Seq: last.Seq, Hash: last.Hash, At: last.At}
}

// Find returns the record under a key.
func (m *MemoryStore) Find(_ context.Context, tenant, key string) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copied(m.records[tenant+"\x00"+key]), nil
}

// FindCommand returns the record of a command.
func (m *MemoryStore) FindCommand(_ context.Context, tenant, commandID string) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.Tenant == tenant && r.CommandID == commandID {
			return copied(r), nil
		}
	}
	return nil, nil
}

// Lost lists records whose lease is over.
func (m *MemoryStore) Lost(_ context.Context, now time.Time, limit int) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lost []Record
	for _, r := range m.records {
		if r.Status == InProgress && r.Substatus != AwaitingConfirmation && !now.Before(r.LeaseUntil) {
			lost = append(lost, *copied(r))
		}
	}
	sort.Slice(lost, func(i, k int) bool { return lost[i].LeaseUntil.Before(lost[k].LeaseUntil) })
	return lost[:min(len(lost), limit)], nil
}

// SweepRecords removes records that are free.
func (m *MemoryStore) SweepRecords(_ context.Context, now time.Time, limit int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for place, r := range m.records {
		if n < limit && r.FreeAt(now) {
			delete(m.records, place)
			n++
		}
	}
	return n, nil
}

// Evidence lists a tenant's evidence.
func (m *MemoryStore) Evidence(_ context.Context, q EvidenceQuery) ([]evidence.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var items []evidence.Item
	for _, it := range m.chains[q.Tenant] {
		switch {
		case it.Seq <= q.After, q.Key != "" && it.Key != q.Key,
			q.CommandID != "" && it.CommandID != q.CommandID && it.SubmittedID != q.CommandID:
			continue
		case q.Limit > 0 && len(items) == q.Limit:
			return items, nil
		}
		items = append(items, it)
	}
	return items, nil
}

// EvidenceHead returns the last link of a chain.
func (m *MemoryStore) EvidenceHead(_ context.Context, tenant string) (evidence.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head(tenant), nil
}

// EvidenceHeads lists the heads of all chains.
func (m *MemoryStore) EvidenceHeads(_ context.Context, after string, limit int) ([]evidence.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var heads []evidence.Head
	for tenant := range m.chains {
		if tenant > after {
			heads = append(heads, m.head(tenant))
		}
	}
	sort.Slice(heads, func(i, k int) bool { return heads[i].Tenant < heads[k].Tenant })
	return heads[:min(len(heads), limit)], nil
}
