package dispatch

import (
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Reservation is room in a lane's window for a delivery that is being committed. After the commit the caller calls Committed
// or Abandon, once.
type Reservation struct {
	ID    godwit.DeliveryID
	Epoch int64 // of the delivery's claim; 0: there was no room, and the delivery waits in the store
	lane  *Lane
	item  *item
}

// Reserve reserves room for a new delivery if there is any. Without room the delivery waits in the store.
func (l *Lane) Reserve(event *godwit.Event, trigger godwit.Trigger, now time.Time) Reservation {
	r := Reservation{ID: godwit.NewDeliveryID(now), lane: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch := l.epoch()
	if epoch == 0 || l.backlog.overflow || l.backlog.reclaiming || l.room(now) <= 0 || !l.d.Running() {
		return r
	}
	l.window.put(r.ID, holding{state: heldReserved, size: len(event.Body)})
	r.Epoch, r.item = epoch, &item{lane: l, Job: attempt.NewJob(event, l.id, r.ID, trigger)}
	r.item.Epoch = epoch
	return r
}

// Endpoint returns the receiver of the delivery.
func (r *Reservation) Endpoint() godwit.EndpointID { return r.lane.id }

// Committed passes the stored delivery to its lane.
func (r *Reservation) Committed(now time.Time) {
	l := r.lane
	if r.Epoch == 0 {
		l.Waiting(now)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.push(r.item)
	l.backlog.settle()
	l.pump()
}

// Abandon releases the room after a failed commit. unknown says that the delivery may have been stored all the same.
func (r *Reservation) Abandon(unknown bool) {
	l := r.lane
	if r.Epoch == 0 {
		if unknown {
			l.NoteDue(l.d.cfg.Clock.Now())
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.drop(r.ID, nil)
	if unknown {
		l.backlog.doubt()
		return
	}
	l.pump() // a claim may have waited for the room
}
