package bench

import (
	"context"
	"net"
	"testing"
	"time"
)

func TestStampSurvives(t *testing.T) {
	body := newBody(42, 1024)
	stamp(body, 1<<40+7, 123*time.Second)
	run, seq, at, err := readStamp(body)
	if err != nil || run != 42 || seq != 1<<40+7 || at != 123*time.Second || len(body) != 1024 {
		t.Errorf("read back %d %d %s %v from %s", run, seq, at, err, body[:100])
	}
	if _, _, _, err := readStamp([]byte(`{"other":"event"}`)); err == nil {
		t.Error("took a foreign body for ours")
	}
}

func TestHistogramIsExactEnough(t *testing.T) {
	var h histogram
	for ms := 1; ms <= 1000; ms++ {
		h.add(time.Duration(ms) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := h.quantile(q); got < want || got > want+want/16 {
			t.Errorf("quantile %g is %s, want %s", q, got, want)
		}
	}
	for v := uint64(0); v < 1<<20; v = v*5/4 + 1 {
		if b := bucket(v); low(b) > v || low(b+1) <= v {
			t.Fatalf("%d is in bucket %d of %d to %d", v, b, low(b), low(b+1))
		}
	}
}

func TestGeneratorAndSinkAgree(t *testing.T) {
	for name, relayed := range map[string]bool{"raw": false, "relay": true} {
		t.Run(name, func(t *testing.T) {
			s, err := startSink(accepts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			addr := s.addr()
			if relayed {
				ctx, cancel := context.WithCancel(t.Context())
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- Relay(ctx, l, RelayOptions{Targets: s.urls()}) }()
				defer func() {
					cancel()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}()
				addr = l.Addr().String()
			}
			tl := newTally(7, &stopwatch{time.Now()})
			s.tally.Store(tl)
			l := load{addr: addr, path: "/", connections: 4, size: 256, events: 500}
			if _, err := l.run(t.Context(), tl); err != nil {
				t.Fatal(err)
			}
			tl.settle(t.Context(), 5*time.Minute)
			missing, duplicates := tl.count()
			if tl.acked.Load() != 500 || tl.arrived.Load() != 500 || missing != 0 || duplicates != 0 {
				t.Errorf("acked %d, arrived %d, missing %d, duplicates %d", tl.acked.Load(), tl.arrived.Load(), missing, duplicates)
			}
			tl.arrive(3, 0)
			if _, duplicates := tl.count(); duplicates != 1 {
				t.Error("a repeat was not counted")
			}
		})
	}
}

func TestGeneratorKeepsItsRate(t *testing.T) {
	s, err := startSink(accepts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for limit := time.Now().Add(5 * time.Minute); ; {
		tl := newTally(1, &stopwatch{time.Now()})
		s.tally.Store(tl)
		l := load{addr: s.addr(), path: "/", connections: 4, size: 100, length: 500 * time.Millisecond, rate: 400}
		if _, err := l.run(t.Context(), tl); err != nil {
			t.Fatal(err)
		}
		n := tl.acked.Load()
		if n > 210 {
			t.Fatalf("%d events in half a second at 400 a second", n)
		}
		if n >= 150 {
			return
		}
		if time.Now().After(limit) { // before, the machine may have been too slow
			t.Fatalf("%d events in half a second at 400 a second, again and again", n)
		}
	}
}

func TestMissingIsCounted(t *testing.T) {
	tl := newTally(1, &stopwatch{time.Now()})
	for range 3 {
		seq, _ := tl.take()
		tl.ack(seq)
	}
	tl.arrive(1, 0)
	if missing, _ := tl.count(); missing != 2 {
		t.Errorf("missing %d", missing)
	}
}
