package relay

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestKeyFieldGoesOnAsItCame: the field is forwarded unchanged, even if its bytes hold more than the key.
func TestKeyFieldGoesOnAsItCame(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-INT-1", "EDS-INT-2")
		r := newRig(t, o)
		for _, profile := range []string{"eds", "ojs", "cybercube", "standard-webhooks"} {
			r.sink.Script("/"+profile, apptest.Status(503), apptest.Status(200))
			r.Endpoint(r.sink.URL("/"+profile), apptest.Fields{"profile": profile, "patterns": []string{"relayed.*"}, "policy": apptest.Fields{"circuit_after": 0}})
		}
		strict := r.Source("strict")
		lenient := r.Source("lenient", apptest.Fields{"settings": apptest.Fields{"lenient_key": true}})
		send := func(s source, field string) answer {
			return r.send(delivery{Path: s.Path, Header: http.Header{"Idempotency-Key": {field}}, Sign: bearer(s)})
		}
		arrives := func(field string, before int) {
			t.Helper()
			for _, profile := range []string{"eds", "ojs", "cybercube", "standard-webhooks"} {
				for i, q := range r.sink.WaitOn("/"+profile, before+2)[before:] {
					if q.Key() != field || len(q.Header["Idempotency-Key"]) != 1 {
						t.Errorf("%s, attempt %d: the field was %s, arrived as %q", profile, i+1, field, q.Header["Idempotency-Key"])
					}
				}
			}
		}
		const bare, withParameters = "8e03978e-40d5-43e8-bc93-6894a57f9324", `"sixteen letters and more";v=1;signed`
		// Parameters do not count, and stay with the key (IKH K-2).
		r.want(send(strict, withParameters), 502)
		first := r.want(send(strict, `"sixteen letters and more"`), 200)
		if first.Key != "sixteen letters and more" || first.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("with and without parameters it is not one key: %s", first.Body)
		}
		arrives(withParameters, 0)
		// A key without quotes is accepted if the operator allows it, and equals the quoted one (EDS T-1).
		r.want(send(strict, bare), 400)
		for _, profile := range []string{"eds", "ojs", "cybercube", "standard-webhooks"} {
			r.sink.Script("/"+profile, apptest.Status(503), apptest.Status(200))
		}
		r.want(send(lenient, bare), 502)
		again := r.want(send(lenient, `"`+bare+`"`), 200)
		if again.Key != bare || again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("with and without quotes it is not one key: %s", again.Body)
		}
		arrives(bare, 2)
		for _, wrong := range []string{"short", "two words without quotes", `"half`, strings.Repeat("k", 1025)} {
			r.want(send(lenient, wrong), 400)
		}
	})
}

// TestKeysOfARelayAreNoNarrower: a key as long as every parser of structured fields understands goes from relay to relay.
func TestKeysOfARelayAreNoNarrower(t *testing.T) {
	trace.Covers(t, "EDS-INT-1")
	a, b := apptest.Start(t, apptest.Options{}), apptest.Start(t, apptest.Options{})
	ra, rb := &rig{Server: a, t: t}, &rig{Server: b, t: t, sink: apptest.NewSink(t)}
	b.Endpoint(rb.sink.URL("/to"), apptest.Fields{"patterns": []string{"order.paid"}})
	fromA := rb.Source("from-a", apptest.Fields{"scheme": "eds", "event_type": apptest.Fields{}})
	atA := a.Endpoint(b.URL + fromA.Path)
	b.Must(apptest.Call{Path: "/v1/sources/" + fromA.ID + "/rotate", Body: apptest.Fields{
		"overlap_seconds": 0, "credential": apptest.Fields{"id": atA.Secret.ID, "secret": atA.Secret.Value}}}, nil)
	s := ra.Source("producer", apptest.Fields{"event_type": apptest.Fields{"fixed": "order.paid"}})
	for _, k := range []string{strings.Repeat("k", 256), strings.Repeat(`"\`, 512)} {
		ra.want(ra.send(delivery{Path: s.Path, Key: k, Sign: bearer(s)}), 200)
		if all := rb.sink.Requests("/to"); all[len(all)-1].Key() != quoted(k) {
			t.Errorf("a key of %d characters arrived as %s", len(k), all[len(all)-1].Key())
		}
	}
	var d struct {
		Keys struct {
			Max int `json:"max_length"`
		} `json:"idempotency_key"`
	}
	a.Must(apptest.Call{Path: "/.well-known/webhook-service"}, &d)
	if d.Keys.Max != 1024 {
		t.Errorf("the description tells of %d characters", d.Keys.Max)
	}
}
