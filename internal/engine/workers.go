package engine

import "sync/atomic"

// idleWorkers is how many goroutines wait for the next attempt.
const idleWorkers = 64

// workers run attempts. A goroutine that has made one waits for another: its stack has grown to what net/http needs, and
// growing it anew for every attempt would show in a profile.
type workers struct {
	jobs chan job
	idle atomic.Int32
	run  func(job)
}

type job struct {
	lane *lane
	item *item
}

// do runs the job at once, on a waiting goroutine if there is one.
func (w *workers) do(j job) {
	select {
	case w.jobs <- j:
	default:
		go w.work(j)
	}
}

func (w *workers) work(j job) {
	for {
		w.run(j)
		if w.idle.Add(1) > idleWorkers {
			w.idle.Add(-1)
			return
		}
		next, ok := <-w.jobs
		w.idle.Add(-1)
		if !ok {
			return // the engine has stopped
		}
		j = next
	}
}
