package dispatch

import "sync/atomic"

// idleWorkers is how many goroutines wait for the next attempt.
const idleWorkers = 64

// workers run attempts. A goroutine that has made one waits for another: its stack has grown to what net/http needs, and
// growing it anew for every attempt would show in a profile.
type workers struct {
	jobs chan *item
	idle atomic.Int32
	run  func(*item)
}

// do runs the attempt at once, on a waiting goroutine if there is one.
func (w *workers) do(it *item) {
	select {
	case w.jobs <- it:
	default:
		go w.work(it)
	}
}

func (w *workers) work(it *item) {
	for {
		w.run(it)
		if w.idle.Add(1) > idleWorkers {
			w.idle.Add(-1)
			return
		}
		next, ok := <-w.jobs
		w.idle.Add(-1)
		if !ok {
			return // the dispatcher has stopped
		}
		it = next
	}
}
