package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A view holds the lane's current target. It is replaced as a whole and read without a lock.
type view struct {
	maker   *attempt.Maker
	target  atomic.Pointer[attempt.Target]
	opening sync.Mutex // held while current makes a target: requests that start together share it, with its access token
}

// Target returns the current snapshot of the endpoint.
func (v *view) Target() *attempt.Target { return v.target.Load() }

func (v *view) active() bool { return v.Target().Endpoint.Status == godwit.EndpointActive }

func (v *view) deleted() bool { return v.Target().Endpoint.Status == godwit.EndpointDeleted }

// current returns the target with a signer whose keys are live now.
func (v *view) current(now time.Time) *attempt.Target {
	if t := v.Target(); t.Current(now) {
		return t
	}
	v.opening.Lock()
	defer v.opening.Unlock()
	t := v.Target()
	next := v.maker.Current(t, now)
	if next != t {
		v.target.CompareAndSwap(t, next)
	}
	return next
}

// edit replaces the target with a changed copy; it reports whether f changed it.
func (v *view) edit(f func(*attempt.Target) bool) bool {
	for {
		old := v.Target()
		next := *old
		if !f(&next) {
			return false
		}
		if v.target.CompareAndSwap(old, &next) {
			return true
		}
	}
}
