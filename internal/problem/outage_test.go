package problem_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// While the store is away the log has the first refused request, their number every ten seconds, and the end.
func TestOutageIsLoggedOnce(t *testing.T) { synctest.Test(t, testOutage) }

func testOutage(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	hands, done := clock.NewManual(time.Unix(1000, 0)), make(chan struct{})
	w := &problem.Writer{Log: logger, Outage: problem.NewOutage(logger, hands, done)}
	refuse := func(n int) {
		for i := range n {
			w.Write(httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/events", nil), fmt.Errorf("commit %d: %w", i, store.ErrUnavailable))
		}
	}
	logged := func(want ...string) {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		if log.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(want) {
			t.Fatalf("logged %q, want %q", lines, want)
		}
		for i, line := range lines {
			if !strings.Contains(line, want[i]) {
				t.Errorf("line %q, want %q", line, want[i])
			}
		}
		log.Reset()
	}
	pass := func() {
		hands.Advance(10 * time.Second)
		synctest.Wait() // for the report
	}

	refuse(1000)
	logged(`level=WARN msg="request failed" code=unavailable`)
	pass()
	logged(`level=WARN msg="requests are refused, and not logged one by one" refused=999 error="commit 999: `)
	refuse(5)
	logged()
	pass()
	logged(`refused=5`)
	pass()
	logged(`level=INFO msg="requests are no longer refused" refused=1005 after=30s`)
	pass()
	logged()
	refuse(2)
	logged(`level=WARN msg="request failed"`)
	close(done) // the server stops
	pass()
	logged()
}
