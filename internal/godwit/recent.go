package godwit

import (
	"encoding/binary"
	"time"
)

// Recent counts attempts over the last hour, minute by minute.
type Recent struct {
	minutes []recentMinute // oldest first, at most one hour
}

type recentMinute struct {
	at             int64 // minutes since 1970
	failed, passed uint32
}

const recentSpan = 60 // minutes

// Add counts an attempt. A unit is the length of a minute, which is shorter if time is scaled.
func (r *Recent) Add(now time.Time, unit time.Duration, failed bool) {
	at := now.UnixNano() / int64(max(unit, 1))
	r.drop(at)
	this, n := recentMinute{at: at}, len(r.minutes)
	for ; n > 0 && r.minutes[n-1].at >= at; n-- { // a clock that was set back leaves minutes in the future: count them as now
		this.failed += r.minutes[n-1].failed
		this.passed += r.minutes[n-1].passed
	}
	if failed {
		this.failed++
	} else {
		this.passed++
	}
	// The slice is copied, because an older value may still be in use.
	r.minutes = append(append(make([]recentMinute, 0, n+1), r.minutes[:n]...), this)
}

func (r *Recent) drop(at int64) {
	for len(r.minutes) > 0 && r.minutes[0].at <= at-recentSpan {
		r.minutes = r.minutes[1:]
	}
}

// FailedShare is the share of failed attempts in the last hour; 0 if there were none.
func (r *Recent) FailedShare(now time.Time, unit time.Duration) float64 {
	at := now.UnixNano() / int64(max(unit, 1))
	var failed, all float64
	for _, m := range r.minutes {
		if m.at > at-recentSpan {
			failed += float64(m.failed)
			all += float64(m.failed) + float64(m.passed)
		}
	}
	if all == 0 {
		return 0
	}
	return failed / all
}

// Each passes the number of attempts of each minute to f, oldest first, with the end of that minute.
func (r *Recent) Each(unit time.Duration, f func(end time.Time, attempts int)) {
	for _, m := range r.minutes {
		f(time.Unix(0, (m.at+1)*int64(unit)).UTC(), int(m.failed)+int(m.passed))
	}
}

// MarshalBinary encodes the counts for a store; nil if there are none.
func (r Recent) MarshalBinary() ([]byte, error) {
	if len(r.minutes) == 0 {
		return nil, nil
	}
	b := make([]byte, 0, 16*len(r.minutes))
	for _, m := range r.minutes {
		b = binary.BigEndian.AppendUint64(b, uint64(m.at))
		b = binary.BigEndian.AppendUint32(b, m.failed)
		b = binary.BigEndian.AppendUint32(b, m.passed)
	}
	return b, nil
}

// UnmarshalBinary decodes the form of MarshalBinary. Data that cannot be decoded counts as empty, because it covers only
// an hour.
func (r *Recent) UnmarshalBinary(b []byte) error {
	r.minutes = nil
	for ; len(b) >= 16; b = b[16:] {
		r.minutes = append(r.minutes, recentMinute{
			at:     int64(binary.BigEndian.Uint64(b)),
			failed: binary.BigEndian.Uint32(b[8:]),
			passed: binary.BigEndian.Uint32(b[12:]),
		})
	}
	return nil
}
