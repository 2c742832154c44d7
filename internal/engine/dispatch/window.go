package dispatch

import (
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A window holds the lane's deliveries in memory: those that are claimed, in sending order, and those in flight or being
// recorded. It is guarded by its lane.
type window struct {
	queue    []*item                       // claimed and ready, in order
	held     map[godwit.DeliveryID]holding // everything in the window; nil before the first delivery
	bytes    int64                         // of the payloads held
	inFlight int
	total    *total
	shard    *shardLoad
}

// An item is a claimed delivery in a lane's window.
type item struct {
	attempt.Job
	lane *Lane
}

// A holding is a delivery's entry in the window. The item identifies the claim: a delivery that returned to the store may be
// claimed again before the lane learns that its former result is stored.
type holding struct {
	item  *item // nil while the commit is under way
	state heldState
	size  int
}

type heldState uint8

const (
	heldReserved heldState = iota // its commit is under way
	heldQueued
	heldInFlight
	heldRecording
)

func (w *window) put(id godwit.DeliveryID, h holding) {
	before, known := w.held[id]
	if w.held == nil {
		w.held = map[godwit.DeliveryID]holding{}
	}
	w.held[id] = h
	if !known {
		w.total.deliveries.Add(1)
		w.shard.add(1)
	}
	w.weigh(h.size - before.size)
}

// putItem adds a claimed delivery or changes its state.
func (w *window) putItem(it *item, state heldState) {
	w.put(it.Work.Delivery.ID, holding{item: it, state: state, size: len(it.Work.Event.Body)})
}

// drop removes an entry if it still belongs to the item.
func (w *window) drop(id godwit.DeliveryID, it *item) {
	if h, ok := w.held[id]; ok && h.item == it {
		delete(w.held, id)
		w.total.deliveries.Add(-1)
		w.shard.add(-1)
		w.weigh(-h.size)
	}
}

func (w *window) weigh(bytes int) {
	w.bytes += int64(bytes)
	w.total.bytes.Add(int64(bytes))
}

// push puts a claimed delivery at the end of the queue.
func (w *window) push(it *item) {
	w.putItem(it, heldQueued)
	w.queue = append(w.queue, it)
}

// pushFront puts a claimed delivery at the front of the queue.
func (w *window) pushFront(it *item) {
	w.putItem(it, heldQueued)
	w.queue = append([]*item{it}, w.queue...)
}

// next removes the first delivery from the queue.
func (w *window) next() *item {
	it := w.queue[0]
	w.queue[0] = nil
	w.queue = w.queue[1:]
	return it
}

// cut removes all but the first keep deliveries from the queue. They stay in the window as being recorded.
func (w *window) cut(keep int) []*item {
	if len(w.queue) <= keep {
		return nil
	}
	back := append([]*item(nil), w.queue[keep:]...)
	clear(w.queue[keep:])
	w.queue = w.queue[:keep]
	for _, it := range back {
		w.putItem(it, heldRecording)
	}
	return back
}

// dropOthers removes queued deliveries that were claimed under another epoch; it reports whether there were any.
func (w *window) dropOthers(epoch int64) bool {
	kept := w.queue[:0]
	for _, it := range w.queue {
		if it.Epoch == epoch {
			kept = append(kept, it)
			continue
		}
		w.drop(it.Work.Delivery.ID, it)
	}
	if len(kept) == len(w.queue) {
		return false
	}
	clear(w.queue[len(kept):])
	w.queue = kept
	return true
}
