package receiver

import (
	"slices"
	"sync"
	"time"
)

// An OJSEvent is what an Open Job Spec event says of itself. Deliveries arrive in any order; Time says which event came
// first (OJS-DLV-17).
type OJSEvent struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Source  string    `json:"source"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
}

// SortByTime puts events in the order in which they happened. Events of one instant keep their order.
func SortByTime(events []OJSEvent) {
	slices.SortStableFunc(events, func(a, b OJSEvent) int { return a.Time.Compare(b.Time) })
}

// Newest keeps the time of the newest event of each subject, whatever the order of arrival, so that a late job.started
// does not overwrite what job.completed has said. It may be used concurrently. It forgets at a restart: applications that
// keep their state in a database keep the time beside it and compare there.
type Newest struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// Takes says whether an event is newer than all before it of its subject, and remembers it if it is.
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

// Forget drops a subject, as when its job has ended for good.
func (n *Newest) Forget(subject string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.seen, subject)
}
