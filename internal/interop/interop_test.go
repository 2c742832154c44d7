//go:build unix

package interop_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/interop"
)

var starters = map[string]func(testing.TB, ...interop.Option) *interop.Receiver{
	"Node": interop.StartNode, "Python": interop.StartPython,
}

// TestRefusesUnsigned: the receivers refuse what carries no signature. What they
// accept is shown where signatures are made.
func TestRefusesUnsigned(t *testing.T) {
	for name, start := range starters {
		t.Run(name, func(t *testing.T) {
			receiver := start(t)
			receiver.SetKeys(t, interop.Key{ID: "a", Secret: []byte("secret")})
			for _, key := range []string{`"1"`, `"2"`} {
				req, err := http.NewRequest("POST", receiver.URL+"/x?y=1", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Idempotency-Key", key)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				verdict := receiver.Next(t)
				want := interop.Verdict{Reason: verdict.Reason, Method: "POST", Target: "/x?y=1", IdempotencyKey: key}
				if res.StatusCode != http.StatusUnauthorized || verdict != want || verdict.Reason == "" {
					t.Errorf("answer %d, verdict %+v", res.StatusCode, verdict)
				}
			}
		})
	}
}

// TestMissingRuntimeFails: without the runtime a test fails and says what to install.
func TestMissingRuntimeFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, start := range starters {
		probe := &probe{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			start(probe)
		}()
		<-done
		if !strings.Contains(probe.failure, name) || !strings.Contains(probe.failure, "install") {
			t.Errorf("%s: failed with %q", name, probe.failure)
		}
	}
}

// probe is a test that may fail.
type probe struct {
	testing.TB
	failure string
}

func (p *probe) Fatalf(format string, args ...any) {
	p.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
