package dispatch

import (
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Reservation is room in a lane's window for a delivery that is being committed. After the commit Committed or Abandon is
// called, once.
type Reservation struct {
	ID    godwit.DeliveryID
	Epoch int64 // under which the delivery is claimed; 0: there was no room, it waits in the store
	lane  *Lane
	item  *item
}

// Reserve keeps room for a new delivery if there is any. Without room the delivery waits in the store.
func (l *Lane) Reserve(event *godwit.Event, trigger godwit.Trigger, now time.Time) Reservation {
	r := Reservation{ID: godwit.NewDeliveryID(now), lane: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch := l.epoch(now)
	if epoch == 0 || l.backlog.overflow || l.backlog.reclaiming || l.room(now) <= 0 || !l.d.Running() {
		return r
	}
	l.window.put(r.ID, holding{state: heldReserved, size: len(event.Body)})
	r.Epoch, r.item = epoch, &item{lane: l, Job: attempt.NewJob(event, l.id, r.ID, trigger)}
	r.item.Epoch = epoch
	return r
}

// Endpoint is the receiver of the delivery.
func (r *Reservation) Endpoint() godwit.EndpointID { return r.lane.id }

// Committed hands the stored delivery to its lane.
func (r *Reservation) Committed(now time.Time) {
	l := r.lane
	if r.Epoch == 0 {
		l.Waiting(now)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.push(r.item)
	l.shedIfInactive()
	l.pump()
}

// Abandon gives the room back after a commit that did not store the delivery, or may have: unknown says which.
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
		l.doubt()
		return
	}
	l.pump() // a claim may have waited for the room
}
