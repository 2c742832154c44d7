package godwit

import (
	"testing"
	"time"
)

func TestRecentIsAMovingHour(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 0, 30, 0, time.UTC)
	var r Recent
	share := func(after time.Duration, want float64) {
		t.Helper()
		if got := r.FailedShare(start.Add(after), time.Minute); got != want {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	share(0, 0)
	r.Add(start, time.Minute, true)
	share(0, 1)
	r.Add(start.Add(time.Second), time.Minute, false)
	share(time.Second, 0.5) // half is not more than half
	r.Add(start.Add(30*time.Minute), time.Minute, true)
	share(30*time.Minute, 2.0/3)
	share(59*time.Minute, 2.0/3)
	share(60*time.Minute, 1) // the first minute has left the hour
	share(90*time.Minute, 0)
	r.Add(start.Add(2*time.Hour), time.Minute, false)
	share(2*time.Hour, 0)
	if len(r.minutes) != 1 {
		t.Errorf("%d minutes are kept", len(r.minutes))
	}
	r.Add(start.Add(119*time.Minute), time.Minute, true) // a clock that was set back
	share(119*time.Minute, 0.5)
	r.Add(start, time.Minute, true)
	share(0, 2.0/3)
	share(59*time.Minute, 2.0/3)
	share(60*time.Minute, 0)
	if len(r.minutes) != 1 {
		t.Errorf("%d minutes are kept", len(r.minutes))
	}
}

func TestRecentStaysSmall(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	var r Recent
	for i := range 10000 {
		r.Add(start.Add(time.Duration(i)*10*time.Second), time.Minute, i%2 == 0)
	}
	if len(r.minutes) != recentSpan {
		t.Errorf("%d minutes are kept", len(r.minutes))
	}
	var scaled Recent
	scaled.Add(start, TimeScale(1e15).Real(time.Minute), true) // a minute of zero length
	if got := scaled.FailedShare(start, 0); got != 1 {
		t.Errorf("share %v", got)
	}
}

// An older value does not change, because it may be written while the next attempt is counted.
func TestRecentValuesAreSeparate(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	var r Recent
	r.Add(start, time.Minute, true)
	held := r
	r.Add(start, time.Minute, false)
	r.Add(start.Add(time.Minute), time.Minute, false)
	if got := held.FailedShare(start, time.Minute); got != 1 {
		t.Errorf("the older value changed to %v", got)
	}
}

func TestRecentIsStored(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	var r, back Recent
	if b, err := r.MarshalBinary(); b != nil || err != nil {
		t.Errorf("nothing is stored as %v: %v", b, err)
	}
	for i := range 100 {
		r.Add(start.Add(time.Duration(i)*time.Minute/2), time.Minute, i%3 == 0)
	}
	b, err := r.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	end := start.Add(50 * time.Minute)
	if err := back.UnmarshalBinary(b); err != nil || back.FailedShare(end, time.Minute) != r.FailedShare(end, time.Minute) {
		t.Errorf("came back with %v: %v", back.FailedShare(end, time.Minute), err)
	}
	for _, broken := range [][]byte{nil, {1}, b[:15], b[:len(b)-1]} {
		if err := back.UnmarshalBinary(broken); err != nil {
			t.Errorf("%d bytes: %v", len(broken), err)
		}
	}
	if back.UnmarshalBinary(nil); len(back.minutes) != 0 {
		t.Error("nothing read leaves what was there")
	}
}
