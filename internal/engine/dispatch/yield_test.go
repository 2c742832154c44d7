package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/shard"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// absent is a store of leases that is away.
type absent struct{ store.Leases }

func (absent) Beat(context.Context, store.Beat) (*godwit.Cluster, error) {
	return nil, store.ErrUnavailable
}

// A delivery that is to be tried again at once is returned to the store if its shard is being given up meanwhile, so that the shard drains.
func TestRetryAtOnceDoesNotKeepAShard(t *testing.T) {
	hands := clock.NewManual(time.Unix(1000, 0))
	d := newIdle(hands)
	d.cfg.Observer = silent{}
	d.cfg.Shards = shard.NewKeeper(shard.Config{Store: absent{}, Clock: hands, Log: d.cfg.Log})
	if d.cfg.Shards.Start(t.Context(), d) == nil {
		t.Fatal("the keeper started without a store")
	}
	l := d.bareLane(godwit.Policy{Concurrency: 1}, 1)
	n := l.id.Shard()
	d.cfg.Shards.Serve([]godwit.Lease{{Shard: n, Epoch: 1}}, hands.Steady()+time.Hour)
	it := l.window.next()
	l.window.putItem(it, heldRecording)

	d.cfg.Shards.Leave()
	it.Stored(&commit.Record{Claim: it, Result: store.Result{Delivery: it.Work.Delivery, Epoch: 1, KeepClaim: true}})
	if h := l.window.held[it.Work.Delivery.ID]; len(l.window.queue) != 0 || h.state != heldRecording {
		t.Fatalf("%d deliveries are queued; the delivery is %+v, and should be on its way back", len(l.window.queue), h)
	}
	it.Stored(&commit.Record{Claim: it, Result: store.Result{Delivery: it.Work.Delivery, Epoch: 1}})
	if drained, clean := d.Drained(n); !drained || !clean {
		t.Errorf("the shard is drained: %v, clean: %v", drained, clean)
	}
}
