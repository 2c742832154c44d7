package crashtest

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/faults"
)

// With the database gone, ingest says 503 and when to come back, and readiness says so too; when it is back, everything that
// was acknowledged before, between and after arrives.
func TestDatabaseAway(t *testing.T) {
	direct, err := url.Parse(apptest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := faults.LayCable(direct.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	direct.Host = c.Address()
	r := newReceiver(t)
	srv := apptest.Start(t, apptest.Options{Store: direct.String()})
	srv.Endpoint(r.URL, apptest.Fields{"policy": map[string]any{"base_seconds": 0.05, "cap_seconds": 0.2, "circuit_after": 0}})

	var acknowledged []string
	post := func(n int) *apptest.Response {
		key := fmt.Sprintf(`"outage-event-%08d"`, n)
		answer := srv.Call(apptest.Call{Method: http.MethodPost, Path: "/v1/events?type=outage.test", Body: `{"n":1}`,
			Header: map[string]string{"Idempotency-Key": key, "Content-Type": "application/json"}})
		if answer.Status == http.StatusAccepted {
			acknowledged = append(acknowledged, key)
		}
		return answer
	}
	n := 0
	for range 3 {
		for range 20 {
			n++
			if answer := post(n); answer.Status != http.StatusAccepted {
				t.Fatalf("with the database there: %d %s", answer.Status, answer.Body)
			}
		}
		c.Set(faults.Cut)
		n++
		answer := post(n)
		if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Fatalf("with the database away: %d, Retry-After %q, %s", answer.Status, answer.Header.Get("Retry-After"), answer.Body)
		}
		if ready := srv.Call(apptest.Call{Path: "/readyz"}); ready.Status != http.StatusServiceUnavailable {
			t.Errorf("ready with the database away: %d", ready.Status)
		}
		c.Set(faults.Whole)
		for post(n).Status != http.StatusAccepted { // the same key, until it is taken
		}
	}
	r.await(t, acknowledged)
}
