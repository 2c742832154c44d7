// Package collector relaxes Go's garbage collector within bounds.
//
// A server with little live memory spends much of its time collecting if it must stay within twice that memory. It may use several
// times as much, which is little in megabytes. With much live memory the same factor would be hundreds of megabytes, and collections are
// rare anyway. So the extra memory is bounded, and the factor follows from it after every collection.
package collector

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	extra   = 64 << 20 // bytes of garbage that may lie about
	relaxed = 400      // percent, with little live memory
	strict  = 50       // percent, with much
)

// Relax sets the collector's percentage now and after every collection.
func Relax() {
	adjust()
	watch(&sentinel{})
}

// A sentinel is garbage that is collected in every cycle.
type sentinel struct{ _ [16]byte }

func watch(s *sentinel) {
	runtime.SetFinalizer(s, func(*sentinel) {
		adjust()
		watch(&sentinel{})
	})
}

// adjust changes the percentage if it is off by more than a tenth: a change stops all goroutines for a moment.
func adjust() {
	next := percent(read("/gc/heap/live:bytes"))
	if now := int(read("/gc/gogc:percent")); next*10 < now*9 || next*10 > now*11 {
		debug.SetGCPercent(next)
	}
}

// percent is the collector's percentage for so much live memory.
func percent(live uint64) int {
	return int(min(max(extra*100/max(live, 1), strict), relaxed))
}

// read returns a measure of the runtime.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
