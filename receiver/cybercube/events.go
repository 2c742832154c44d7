package cybercube

import (
	"context"
	"crypto/rand"
	"sync"
	"time"
)

// MemoryEvents remembers events in this process. It may be used concurrently.
type MemoryEvents struct {
	mu     sync.Mutex
	events map[string]memoryEvent
}

type memoryEvent struct {
	token      string
	receivedAt time.Time
	processed  *ProcessedEvent
}

// NewMemoryEvents makes an empty memory.
func NewMemoryEvents() *MemoryEvents { return &MemoryEvents{events: map[string]memoryEvent{}} }

// Get implements [Events].
func (m *MemoryEvents) Get(_ context.Context, eventID string) (*ProcessedEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.events[eventID].processed, nil
}

// Lock implements [Events].
func (m *MemoryEvents) Lock(_ context.Context, e *Event, now, expired time.Time) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held, ok := m.events[e.ID]; ok && (held.processed != nil || held.receivedAt.After(expired)) {
		return "", false, nil
	}
	token := rand.Text()
	m.events[e.ID] = memoryEvent{token: token, receivedAt: now}
	return token, true, nil
}

// MarkProcessed implements [Events].
func (m *MemoryEvents) MarkProcessed(_ context.Context, eventID, token, result string, now time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held, ok := m.events[eventID]
	if !ok || held.token != token || held.processed != nil {
		return false, nil
	}
	held.processed = &ProcessedEvent{eventID, now, result}
	m.events[eventID] = held
	return true, nil
}

// ReleaseLock implements [Events].
func (m *MemoryEvents) ReleaseLock(_ context.Context, eventID, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held := m.events[eventID]; held.token == token && held.processed == nil {
		delete(m.events, eventID)
	}
	return nil
}

// Cleanup implements [Events].
func (m *MemoryEvents) Cleanup(_ context.Context, before time.Time, limit int) (dropped int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.events {
		if dropped == limit {
			break
		}
		if e.receivedAt.Before(before) {
			delete(m.events, id)
			dropped++
		}
	}
	return dropped, nil
}
