package godwit

import (
	"slices"
	"time"
)

// Delay is the wait before retry n, where n = 0 is the first: full jitter over a doubling window (EDS-BKO-4), or the fixed
// schedule with up to a tenth added (decision 3). A Retry-After sets a minimum. The random part is added to it, so that
// deliveries held by the same answer do not all return at once (EDS T-6). Past the end of a schedule its last delay
// repeats.
func (p *Policy) Delay(n int, retryAfter time.Duration, draw func() float64) time.Duration {
	if len(p.Schedule) > 0 {
		d := p.Schedule[min(n, len(p.Schedule)-1)]
		if retryAfter > 0 && p.RetryAfterReplaces {
			return addJitter(retryAfter, retryAfter/10, draw)
		}
		d += time.Duration(draw() * float64(d) / 10)
		return max(d, addJitter(retryAfter, d/10, draw))
	}
	return addJitter(retryAfter, p.Window(n), draw)
}

// LongestDelay is the longest wait before a retry by the schedule alone, without Retry-After.
func (p *Policy) LongestDelay() time.Duration {
	if len(p.Schedule) > 0 {
		return slices.Max(p.Schedule) * 11 / 10
	}
	return p.Cap
}

func addJitter(floor, window time.Duration, draw func() float64) time.Duration {
	return floor + time.Duration(draw()*float64(window))
}

// Window is the width of the jitter window before retry n.
func (p *Policy) Window(n int) time.Duration {
	w := p.Base
	for range n {
		if w >= p.Cap/2 {
			return p.Cap
		}
		w *= 2
	}
	return min(w, p.Cap)
}
