package collector

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 400, 32 << 20: 200, 64 << 20: 100, 128 << 20: 50, 4 << 30: 50} {
		if got := percent(live); got != want {
			t.Errorf("%d MiB live: %d %%, want %d", live>>20, got, want)
		}
	}
}

// The percentage follows the live memory, up and down.
func TestPercentFollowsMemory(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	Relax()
	follow := func(wants func(int) bool) {
		for {
			runtime.GC()
			if wants(int(read("/gc/gogc:percent"))) {
				return
			}
			runtime.Gosched()
		}
	}
	follow(func(p int) bool { return p > relaxed*8/10 })
	much := make([]byte, 200<<20)
	follow(func(p int) bool { return p < 2*strict })
	runtime.KeepAlive(much)
	much = nil
	follow(func(p int) bool { return p > relaxed*8/10 })
}
