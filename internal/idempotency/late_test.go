package idempotency_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// A request outlives its lease, and its repeat is answered first. The key belongs to the repeat from then on, whatever becomes of
// the first.
func TestLateRequestLeavesTheKeyToItsRepeat(t *testing.T) {
	for _, c := range []struct{ status, want int }{{201, 409}, {503, 503}, {400, 400}} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			f := newFixture(t, nil)
			first := true
			f.handler = func(w http.ResponseWriter, _ *http.Request) {
				if !first {
					io.WriteString(w, "repeat")
					return
				}
				first = false
				f.clock.Advance(61 * time.Second)
				if r := f.post(`{}`, "Idempotency-Key", key1); r.status != 200 || r.body != "repeat" {
					t.Errorf("repeat: %+v", r)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, "late")
			}
			if r := f.post(`{}`, "Idempotency-Key", key1); r.status != c.want {
				t.Errorf("late: %+v", r)
			}
			if r := f.post(`{}`, "Idempotency-Key", key1); !r.replayed() || r.body != "repeat" {
				t.Errorf("afterwards: %+v", r)
			}
			f.wantCalls(2)
		})
	}
}
