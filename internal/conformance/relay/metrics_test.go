package relay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// metric reads one value of GET /metrics; 0 when it is not there.
func (r *rig) metric(series string) float64 {
	r.t.Helper()
	for line := range strings.Lines(string(r.Must(apptest.Call{Path: "/metrics"}, nil).Body)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			var v float64
			if _, err := fmt.Sscan(value, &v); err != nil {
				r.t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// TestMetrics: deliveries of upstreams are counted by scheme and verdict, refusals by reason, and waiting upstreams.
func TestMetrics(t *testing.T) {
	r := newRig(t, apptest.Options{})
	open := make(chan struct{})
	r.sink.Script("/to", apptest.Status(503), apptest.Status(200), apptest.Status(200).Until(open))
	r.Endpoint(r.sink.URL("/to"), apptest.Fields{"policy": apptest.Fields{"circuit_after": 0}})
	through, stored := r.Source("through"), r.storing("stored", apptest.Fields{"scheme": "github", "adopt": true})
	slack := r.Source("slack", apptest.Fields{"scheme": "slack", "adopt": true, "credentials": []apptest.Fields{{"secret": "signing-secret-of-slack"}}})
	d := delivery{Path: through.Path, Key: key("one"), Sign: bearer(through)}
	r.want(r.send(d), 502)
	r.want(r.send(d), 200)
	waits := r.begin(delivery{Path: through.Path, Key: key("two"), Sign: bearer(through)})
	r.timer(start.Add(20 * time.Second))
	r.sink.WaitOn("/to", 3)
	if n := r.metric("godwit_inbound_waiting"); n != 1 {
		t.Errorf("%g wait", n)
	}
	close(open)
	r.want(r.await(waits), 200)
	r.want(r.send(delivery{Path: stored.Path, Header: map[string][]string{"X-Github-Delivery": {"1"}}, Sign: github(stored.Issued.Secret)}), 202)
	r.want(r.send(delivery{Path: stored.Path, Sign: github("wrong")}), 401)
	r.want(r.send(delivery{Path: through.Path, Sign: bearer(through)}), 400)
	r.want(r.send(delivery{Path: "/in/nowhere", Key: key("three")}), 404)
	body := `{"type":"url_verification","challenge":"abc"}`
	if a := r.want(r.send(delivery{Path: slack.Path, Body: body, Sign: signSlack("signing-secret-of-slack", r.Clock.Now())}), 200); string(a.Body) != "abc" {
		t.Errorf("the challenge is answered with %q", a.Body)
	}
	r.Must(apptest.Call{Method: "POST", Path: "/v1/sources/" + through.ID + "/pause"}, nil)
	r.want(r.send(d), 503)
	for series, want := range map[string]float64{
		`godwit_inbound_received_total{scheme="bearer",verdict="accepted"}`:    2,
		`godwit_inbound_received_total{scheme="bearer",verdict="downstream"}`:  1,
		`godwit_inbound_received_total{scheme="bearer",verdict="refused"}`:     1,
		`godwit_inbound_received_total{scheme="bearer",verdict="unavailable"}`: 1,
		`godwit_inbound_received_total{scheme="github",verdict="stored"}`:      1,
		`godwit_inbound_received_total{scheme="github",verdict="refused"}`:     1,
		`godwit_inbound_received_total{scheme="slack",verdict="handshake"}`:    1,
		`godwit_inbound_received_total{scheme="none",verdict="refused"}`:       1,
		`godwit_inbound_rejections_total{reason="mismatch"}`:                   1,
		`godwit_inbound_rejections_total{reason="idempotency-key-missing"}`:    1,
		`godwit_inbound_rejections_total{reason="not-found"}`:                  1,
		`godwit_inbound_waiting`: 0,
	} {
		if got := r.metric(series); got != want {
			t.Errorf("%s is %g, want %g", series, got, want)
		}
	}
}
