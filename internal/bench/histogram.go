package bench

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets whose width is a 32nd of their value: 3 % exact, constant memory, no lock.
type histogram struct {
	buckets [64 * subBuckets]atomic.Uint64
}

const (
	subBits    = 5
	subBuckets = 1 << subBits
)

func (h *histogram) add(d time.Duration) { h.buckets[bucket(uint64(max(d, 0)))].Add(1) }

// merge adds the values of another histogram.
func (h *histogram) merge(o *histogram) {
	for i := range o.buckets {
		if n := o.buckets[i].Load(); n > 0 {
			h.buckets[i].Add(n)
		}
	}
}

func bucket(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	e := bits.Len64(v) - subBits - 1
	return (e+1)*subBuckets + int(v>>e) - subBuckets
}

// low is the smallest value of a bucket.
func low(b int) uint64 {
	if b < subBuckets {
		return uint64(b)
	}
	e := b/subBuckets - 1
	return uint64(subBuckets+b%subBuckets) << e
}

// quantile is the duration that a share q of the values does not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	var total uint64
	for i := range h.buckets {
		total += h.buckets[i].Load()
	}
	if total == 0 {
		return 0
	}
	rank := max(uint64(q*float64(total)+0.5), 1)
	var seen uint64
	for i := range h.buckets {
		if seen += h.buckets[i].Load(); seen >= rank {
			return time.Duration(low(i+1) - 1)
		}
	}
	return 0
}
