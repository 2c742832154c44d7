package command

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// A MemoryStore keeps everything in memory, for tests and for programs whose commands need not survive a restart. Its
// effects are of type MemoryEffect.
type MemoryStore struct {
	mu      sync.Mutex
	records map[RecordID]*Record
	chains  map[string][]evidence.Item
}

// A MemoryEffect changes something in memory and returns an R.
type MemoryEffect[R any] struct {
	EffectOf[R]
	Do func() (R, error)
	// Undo reverts the change if a later effect fails or the outcome is refused. The store calls it only after Do has
	// succeeded. If it is nil, the change cannot be reverted.
	Undo func()
}

func (e MemoryEffect[R]) apply() (Returned, func(), error) {
	r, err := e.Do()
	return e.Returns(r), e.Undo, err
}

// InMemory returns an effect of MemoryStore that cannot be undone.
func InMemory[R any](do func() (R, error)) MemoryEffect[R] { return MemoryEffect[R]{Do: do} }

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{records: map[RecordID]*Record{}, chains: map[string][]evidence.Item{}}
}

// Advance applies steps in order.
func (m *MemoryStore) Advance(ctx context.Context, now time.Time, steps []*Step) ([]Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Advance(ctx, &memoryTransaction{store: m}, now, steps)
}

// memoryTransaction writes to the maps of a store whose lock is held.
type memoryTransaction struct {
	store *MemoryStore
	undo  []func() // of the effects since the savepoint
}

func (t *memoryTransaction) Read(_ context.Context, tenants []string, records []RecordID) (Snapshot, error) {
	read := Snapshot{Heads: map[string]evidence.Head{}, Records: map[RecordID]*Record{}}
	for _, tenant := range tenants {
		read.Heads[tenant] = t.store.head(tenant)
	}
	for _, id := range records {
		if r := t.store.records[id]; r != nil {
			read.Records[id] = r
		}
	}
	return read, nil
}

// Bulk is false: an effect without Undo stays applied.
func (t *memoryTransaction) Bulk() bool { return false }

func (t *memoryTransaction) Savepoint(context.Context) error { t.undo = nil; return nil }
func (t *memoryTransaction) Release(context.Context) error   { return nil }

func (t *memoryTransaction) RollBack(context.Context) error {
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
	return nil
}

func (t *memoryTransaction) Apply(_ context.Context, effects []Effect) (results Results, refusal, err error) {
	for _, effect := range effects {
		r, undo, err := applyInMemory(effect)
		if err != nil {
			return nil, err, nil
		}
		if undo != nil {
			t.undo = append(t.undo, undo)
		}
		results = append(results, r)
	}
	return results, nil, nil
}

func (t *memoryTransaction) Commit(_ context.Context, w *Writes) error {
	for _, r := range w.Records {
		t.store.records[RecordID{r.Tenant, r.Key}] = r.Record
	}
	for _, item := range w.Items {
		t.store.chains[item.Tenant] = append(t.store.chains[item.Tenant], item)
	}
	return nil
}

// applyInMemory applies one effect. It turns a panic into an error, because other commands share the transaction.
func applyInMemory(effect Effect) (r Returned, undo func(), err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("effect panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if e, ok := effect.(interface {
		apply() (Returned, func(), error)
	}); ok {
		return e.apply()
	}
	return r, nil, fmt.Errorf("a MemoryStore cannot apply an effect of type %T: use a MemoryEffect", effect)
}

func (m *MemoryStore) head(tenant string) evidence.Head {
	chain := m.chains[tenant]
	if len(chain) == 0 {
		return evidence.Head{}
	}
	return chain[len(chain)-1].Head()
}

// Find returns the record under a key.
func (m *MemoryStore) Find(_ context.Context, tenant, key string) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copied(m.records[RecordID{tenant, key}]), nil
}

// FindCommand returns the record of a command.
func (m *MemoryStore) FindCommand(_ context.Context, tenant, commandID string) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var first *Record
	for _, r := range m.records {
		if r.Tenant == tenant && r.CommandID == commandID && (first == nil || r.CreatedAt.Before(first.CreatedAt)) {
			first = r
		}
	}
	return copied(first), nil
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

// SweepRecords removes free records.
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
		case it.Seq <= q.After, q.Key != "" && it.Key != q.Key, q.Target != "" && it.Target != q.Target,
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
	for tenant, chain := range m.chains {
		if tenant > after && len(chain) > 0 {
			heads = append(heads, m.head(tenant))
		}
	}
	sort.Slice(heads, func(i, k int) bool { return heads[i].Tenant < heads[k].Tenant })
	return heads[:min(len(heads), limit)], nil
}

// Records lists records by tenant and key.
func (m *MemoryStore) Records(_ context.Context, tenant, key string, limit int) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Record
	for _, r := range m.records {
		if r.Tenant > tenant || r.Tenant == tenant && r.Key > key {
			list = append(list, *copied(r))
		}
	}
	sort.Slice(list, func(i, k int) bool {
		return list[i].Tenant < list[k].Tenant || list[i].Tenant == list[k].Tenant && list[i].Key < list[k].Key
	})
	return list[:min(len(list), limit)], nil
}
