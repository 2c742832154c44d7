package stats

import (
	"math/bits"
	"slices"
	"time"
)

// A Sketch counts durations in buckets of logarithmic width: eight to a power of two, so that a quantile is off by 6.25 % at most. Sketches of
// different endpoints, times and nodes can be added. It is sorted by bucket.
type Sketch []Bucket

// A Bucket counts durations of about the same length.
type Bucket struct {
	Index uint16
	Count int64
}

const (
	subBits = 3
	// maxBucket holds all durations from 2^41 µs, which is 25 days.
	maxBucket = 39 << subBits
)

// bucketOf returns the bucket of a duration. Buckets 0 to 7 are single microseconds.
func bucketOf(d time.Duration) uint16 {
	us := uint64(max(d.Microseconds(), 0))
	if us < 1<<subBits {
		return uint16(us)
	}
	exponent := bits.Len64(us) - 1 - subBits
	index := (exponent+1)<<subBits | int(us>>exponent)&(1<<subBits-1)
	return uint16(min(index, maxBucket))
}

// middle returns the middle of a bucket.
func middle(index uint16) time.Duration {
	if index < 1<<subBits {
		return time.Duration(index) * time.Microsecond
	}
	exponent := int(index>>subBits) - 1
	low := uint64(1<<subBits|index&(1<<subBits-1)) << exponent
	return time.Duration(low)*time.Microsecond + time.Duration(uint64(1)<<exponent)*time.Microsecond/2
}

// Add counts a duration.
func (s *Sketch) Add(d time.Duration) { s.add(bucketOf(d), 1) }

func (s *Sketch) add(index uint16, count int64) {
	at, found := slices.BinarySearchFunc(*s, index, func(b Bucket, i uint16) int { return int(b.Index) - int(i) })
	if found {
		(*s)[at].Count += count
		return
	}
	*s = slices.Insert(*s, at, Bucket{index, count})
}

// Merge adds the counts of another sketch.
func (s *Sketch) Merge(o Sketch) {
	if len(*s) == 0 {
		*s = slices.Clone(o)
		return
	}
	for _, b := range o {
		s.add(b.Index, b.Count)
	}
}

// Quantile returns the duration that the share q of all durations does not exceed. ok is false if there are none.
func (s Sketch) Quantile(q float64) (d time.Duration, ok bool) {
	var total int64
	for _, b := range s {
		total += b.Count
	}
	if total <= 0 {
		return 0, false
	}
	rank := int64(q * float64(total-1))
	for _, b := range s {
		if rank -= b.Count; rank < 0 {
			return middle(b.Index), true
		}
	}
	return middle(s[len(s)-1].Index), true
}

func (s Sketch) append(b []byte) []byte {
	b = appendNumber(b, int64(len(s)))
	last := uint16(0)
	for _, bucket := range s {
		b = appendNumber(b, int64(bucket.Index-last))
		b = appendNumber(b, bucket.Count)
		last = bucket.Index
	}
	return b
}

// sketch reads a sketch, and adds it to s unless that is nil.
func (r *reader) sketch(s *Sketch) {
	index := int64(0)
	n := r.number()
	if s != nil && *s == nil && n <= maxBucket+1 {
		*s = make(Sketch, 0, n)
	}
	for ; n > 0 && !r.bad; n-- {
		index += r.number()
		count := r.number()
		if index > maxBucket {
			r.fail()
		}
		if s == nil || r.bad {
			continue
		}
		if last := len(*s) - 1; last < 0 || int64((*s)[last].Index) < index {
			*s = append(*s, Bucket{uint16(index), count})
		} else {
			s.add(uint16(index), count)
		}
	}
}
