package command

import (
	"errors"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// A leaseKeeper renews the lease of an execution while it runs. It cancels the execution when another executor has taken
// over the command, and when the lease has expired without renewal: from then on another executor may continue the
// command, and both would call the provider.
type leaseKeeper struct {
	e *execution

	mu      sync.Mutex
	ended   bool
	renewal func() bool // stops the timer of the next renewal
	lapse   func() bool // stops the timer that cancels the execution at the end of the lease
	renewed sync.WaitGroup
}

// keepLease starts a leaseKeeper. After stop returns, it does not change the record any more.
func (e *execution) keepLease() (stop func()) {
	k := &leaseKeeper{e: e}
	k.mu.Lock()
	defer k.mu.Unlock()
	// A slow store may have used up a part of the lease, or all of it.
	left := min(e.rec.Load().LeaseUntil.Sub(e.x.cfg.Now()), e.x.cfg.Lease)
	if left <= 0 {
		e.cancel(errLapsed)
	}
	k.lapse = k.lapseAfter(left)
	k.renewAfter(left / 3)
	return k.stop
}

func (k *leaseKeeper) lapseAfter(d time.Duration) func() bool {
	return k.e.x.cfg.AfterFunc(d, func() { k.e.cancel(errLapsed) })
}

func (k *leaseKeeper) renewAfter(d time.Duration) { k.renewal = k.e.x.cfg.AfterFunc(d, k.renew) }

func (k *leaseKeeper) renew() {
	k.mu.Lock()
	if k.ended {
		k.mu.Unlock()
		return
	}
	k.renewed.Add(1)
	k.mu.Unlock()
	defer k.renewed.Done()

	lapse := k.lapseAfter(k.e.x.cfg.Lease) // it counts from before the renewal
	err := k.e.update(func(r *Record) []evidence.Entry {
		r.LeaseUntil = k.e.x.now().Add(k.e.x.cfg.Lease)
		return nil
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.lapse, lapse = lapse, k.lapse
	}
	lapse()
	switch {
	case k.ended:
		k.lapse()
	case errors.Is(err, errSuperseded):
		k.e.cancel(errSuperseded)
	default:
		k.renewAfter(k.e.x.cfg.Lease / 3)
	}
}

func (k *leaseKeeper) stop() {
	k.mu.Lock()
	k.ended = true
	k.renewal()
	k.lapse()
	k.mu.Unlock()
	k.renewed.Wait()
}
