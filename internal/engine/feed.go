package engine

import (
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A FeedItem is one recorded attempt as watchers see it.
type FeedItem struct {
	Attempt   godwit.Attempt
	EventType string
	Status    godwit.DeliveryStatus // of the delivery, after the attempt
}

// feed hands recorded attempts to watchers. A watcher that does not keep up misses items: delivery never waits for one.
type feed struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

type watcher struct {
	tenant godwit.TenantID
	items  chan FeedItem
}

const feedBuffer = 256

// Watch streams the attempts of a tenant from now on, once they are recorded. The zero tenant watches all. Call stop
// when done; the channel is then closed.
func (e *Engine) Watch(tenant godwit.TenantID) (items <-chan FeedItem, stop func()) {
	w := &watcher{tenant: tenant, items: make(chan FeedItem, feedBuffer)}
	e.feed.mu.Lock()
	e.feed.watchers[w] = struct{}{}
	e.feed.mu.Unlock()
	var once sync.Once
	return w.items, func() {
		once.Do(func() {
			e.feed.mu.Lock()
			delete(e.feed.watchers, w)
			e.feed.mu.Unlock()
			close(w.items)
		})
	}
}

func (f *feed) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers) == 0
}

func (f *feed) publish(item FeedItem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watchers {
		if !w.tenant.IsZero() && w.tenant != item.Attempt.TenantID {
			continue
		}
		select {
		case w.items <- item:
		default:
		}
	}
}
