package dispatch

import "sync/atomic"

// idleWorkers is how many idle goroutines are kept.
const idleWorkers = 64

// workers run attempts. A goroutine is reused after an attempt: its stack has grown to the size that net/http needs, and
// growing a new stack for every attempt is costly.
type workers struct {
	jobs chan *item
	idle atomic.Int32
	run  func(*item)
}

// do runs the attempt at once, on an idle goroutine if there is one.
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
