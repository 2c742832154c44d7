package follow

import (
	"slices"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A FeedItem is one recorded attempt.
type FeedItem struct {
	Attempt   godwit.Attempt
	EventType string
	Status    godwit.DeliveryStatus // of the delivery, after the attempt
}

// A Feed sends recorded attempts to watchers. A watcher that is too slow misses items.
type Feed struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// NewFeed makes a feed without watchers.
func NewFeed() *Feed { return &Feed{watchers: map[*watcher]struct{}{}} }

type watcher struct {
	tenant godwit.TenantID
	items  chan FeedItem
}

const feedBuffer = 256

// Watch streams the attempts of a tenant from now on, once they are recorded. The zero tenant watches all. Call stop
// when done; the channel is then closed.
func (f *Feed) Watch(tenant godwit.TenantID) (items <-chan FeedItem, stop func()) {
	w := &watcher{tenant: tenant, items: make(chan FeedItem, feedBuffer)}
	f.mu.Lock()
	f.watchers[w] = struct{}{}
	f.mu.Unlock()
	var once sync.Once
	return w.items, func() {
		once.Do(func() {
			f.mu.Lock()
			delete(f.watchers, w)
			f.mu.Unlock()
			close(w.items)
		})
	}
}

// Empty reports whether there are no watchers.
func (f *Feed) Empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers) == 0
}

// tenants lists whom the watchers watch, without repeats.
func (f *Feed) tenants() (list []godwit.TenantID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watchers {
		if !slices.Contains(list, w.tenant) {
			list = append(list, w.tenant)
		}
	}
	return list
}

// Publish sends an attempt to the watchers of its tenant.
func (f *Feed) Publish(item FeedItem) {
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
