package httpapi

import (
	"math"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/problem"
)

// Failures limits how often an address may fail within a minute, without a word about other addresses. An IPv6 network of 64 bits counts as one address,
// since its owner has them all.
type Failures struct {
	limit int
	now   func() time.Time

	mu     sync.Mutex
	counts map[netip.Prefix]*failureCount
}

type failureCount struct {
	until time.Time
	n     int
}

const (
	failurePeriod = time.Minute
	maxAddresses  = 10_000 // beyond that, counts of others are forgotten, not addresses refused
)

// NewFailures returns a limit. A limit that is not positive allows any number.
func NewFailures(limit int, now func() time.Time) *Failures {
	return &Failures{limit: limit, now: now, counts: map[netip.Prefix]*failureCount{}}
}

func networkOf(address string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the number of bits fits
	return p
}

// Check refuses an address that has failed too often.
func (f *Failures) Check(address string) error {
	if f.limit <= 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, now := f.counts[networkOf(address)], f.now()
	if c == nil || !now.Before(c.until) || c.n < f.limit {
		return nil
	}
	wait := int(math.Ceil(c.until.Sub(now).Seconds()))
	return problem.TooManyRequests.With("too many sign-ins from this address have failed; wait %d seconds", wait).WithHeader("Retry-After", strconv.Itoa(wait))
}

// Add counts a failure.
func (f *Failures) Add(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	network, now := networkOf(address), f.now()
	c := f.counts[network]
	if c == nil || !now.Before(c.until) {
		if c == nil && len(f.counts) >= maxAddresses {
			f.makeRoom(now)
		}
		c = &failureCount{until: now.Add(failurePeriod)}
		f.counts[network] = c
	}
	c.n++
}

// makeRoom removes what has passed or, if there is nothing, one arbitrary count.
func (f *Failures) makeRoom(now time.Time) {
	for network, c := range f.counts {
		if !now.Before(c.until) {
			delete(f.counts, network)
		}
	}
	for network := range f.counts {
		if len(f.counts) < maxAddresses {
			return
		}
		delete(f.counts, network)
	}
}
