package receiver

import (
	"slices"
	"sync"
	"time"
)

// An OJSEvent holds the attributes of an Open Job Spec event. Deliveries arrive in any order; Time says which event came first
// (OJS-DLV-17).
type OJSEvent struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Source  string    `json:"source"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
}

// SortByTime sorts events by the time at which they happened. Events of the same time keep their order.
func SortByTime(events []OJSEvent) {
	slices.SortStableFunc(events, func(a, b OJSEvent) int { return a.Time.Compare(b.Time) })
}

// Newest keeps the time of the newest event of each subject, so that a late job.started does not overwrite job.completed. It
// may be used concurrently. It forgets at a restart: an application that keeps its state in a database should keep the time
// there and compare it.
type Newest struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// Takes reports whether an event is newer than all earlier ones of its subject, and remembers it if so.
func (n *Newest) Takes(e OJSEvent) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known, ok := n.seen[e.Subject]; ok && !e.Time.After(known) {
		return false
	}
	if n.seen == nil {
		n.seen = map[string]time.Time{}
	}
	n.seen[e.Subject] = e.Time
	return true
}

// Forget drops a subject, for example when its job has ended.
func (n *Newest) Forget(subject string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.seen, subject)
}
