package httpapi

import (
	"math"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Failures limits how often an address may fail within a minute with credentials that begin alike. Others are not affected: neither other addresses nor,
// at the same address, credentials that begin otherwise. Behind a proxy that is not trusted all clients have one address, and one of them must not lock out the
// others. An IPv6 network of 64 bits counts as one address, since its owner has them all.
//
// The limit does not make credentials safe, which their 256 random bits do. It slows a client down that repeats a wrong one, or that knows the beginning of one.
type Failures struct {
	limit  int
	steady func() time.Duration // a clock that is never set

	mu     sync.Mutex
	counts map[failing]*failureCount
}

// failing is what failures are counted by.
type failing struct {
	network netip.Prefix
	hint    string // beginning of the credential
}

type failureCount struct {
	until time.Duration
	n     int
}

const (
	failurePeriod = time.Minute
	maxFailing    = 10_000 // beyond that, counts of others are forgotten, not clients refused
)

// NewFailures returns a limit. steady tells the time since a moment in the past: if the machine's clock is set, a lock-out lasts as long as it should. A limit that is not
// positive allows any number.
func NewFailures(limit int, steady func() time.Duration) *Failures {
	return &Failures{limit: limit, steady: steady, counts: map[failing]*failureCount{}}
}

func failingOf(address, credential string) failing {
	return failing{networkOf(address), godwit.TokenHint(credential)}
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

// Check refuses an address that has failed too often with credentials that begin like this one.
func (f *Failures) Check(address, credential string) error {
	if f.limit <= 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, now := f.counts[failingOf(address, credential)], f.steady()
	if c == nil || now >= c.until || c.n < f.limit {
		return nil
	}
	wait := int(math.Ceil((c.until - now).Seconds()))
	return problem.TooManyRequests.With("too many sign-ins from this address with a credential that begins like this one have failed; wait %d seconds", wait).
		WithHeader("Retry-After", strconv.Itoa(wait))
}

// Add counts a failure.
func (f *Failures) Add(address, credential string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by, now := failingOf(address, credential), f.steady()
	c := f.counts[by]
	if c == nil || now >= c.until {
		if c == nil && len(f.counts) >= maxFailing {
			f.makeRoom(now)
		}
		c = &failureCount{until: now + failurePeriod}
		f.counts[by] = c
	}
	c.n++
}

// makeRoom removes what has passed or, if there is nothing, one arbitrary count.
func (f *Failures) makeRoom(now time.Duration) {
	for by, c := range f.counts {
		if now >= c.until {
			delete(f.counts, by)
		}
	}
	for by := range f.counts {
		if len(f.counts) < maxFailing {
			return
		}
		delete(f.counts, by)
	}
}
