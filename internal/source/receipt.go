package source

import (
	"context"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// receiptEvery is how far the stored time of a source's last request may be behind: a write for every request would cost as much as the event.
const receiptEvery = time.Minute

// receiptTimeout bounds the write: the answer of the request waits for it.
const receiptTimeout = 2 * time.Second

// receipts remembers what this node has noted, so that requests that come at the same moment do not all write.
type receipts struct {
	mu   sync.Mutex
	last map[godwit.SourceID]time.Time
}

// Received notes that a source received an authentic request. It writes at most once a minute. A failure is logged: the request has been served.
func (s *Sources) Received(ctx context.Context, src *godwit.Source) {
	now := s.now()
	if now.Sub(src.LastReceivedAt) < receiptEvery || !s.receipts.due(src.ID, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiptTimeout)
	defer cancel()
	if err := s.cfg.Store.ReceivedAt(ctx, src.ID, now); err != nil {
		s.cfg.Log.Warn("receipt of a source not noted", "source", src.ID.String(), "error", err)
	}
}

func (r *receipts) due(id godwit.SourceID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.last[id]) < receiptEvery {
		return false
	}
	if r.last == nil || len(r.last) >= mostGates {
		r.last = map[godwit.SourceID]time.Time{}
	}
	r.last[id] = now
	return true
}
