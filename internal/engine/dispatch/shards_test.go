package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/store"
)

// A loader is a store from which endpoints are loaded.
type loader struct {
	Store
	load func(shards []int)
}

func (l *loader) LoadShards(_ context.Context, shards []int, _ func(*store.LoadedEndpoint) error) error {
	l.load(shards)
	return nil
}

// While the endpoints of shards are learnt anew, nothing else makes lanes of them: an endpoint with two lanes would have deliveries
// in one that the other takes for lost.
func TestRelearnExcludesOtherReaders(t *testing.T) {
	d := newIdle(clock.NewManual(time.Unix(0, 0)))
	d.cfg.Store = &loader{load: func(shards []int) {
		for _, shard := range shards {
			if d.reading[shard].TryLock() {
				t.Errorf("shard %d may be read meanwhile", shard)
			}
		}
		if !d.reading[4].TryLock() {
			t.Error("other shards cannot be read meanwhile")
		}
		d.reading[4].Unlock()
	}}
	if err := d.Relearn(t.Context(), []int{9, 3, 5}); err != nil {
		t.Fatal(err)
	}
	if !d.reading[3].TryLock() {
		t.Error("the shard stays locked")
	}
}
