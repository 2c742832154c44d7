package cybercube

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/trace"
)

// testSecret is the secret of the vectors.
const testSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"

// TestEverythingIsSigned: first attempts, retries, tests and replays.
func TestEverythingIsSigned(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-SIG-1", "CCW-SIG-4", "CCW-SIG-5")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(500), ok)
		ep := r.endpoint("/a")
		id := r.publish("project.created")
		r.settle()
		r.pass(time.Minute)
		r.data(200, apptest.Call{Path: base + "/endpoints/" + ep.ID + "/test", Body: object{}})
		r.replay(id, ep)
		r.settle()
		got := r.sink.Requests("/a")
		equal(t, "requests", len(got), 4)
		for _, q := range got {
			verify(t, q, ep)
			if s := q.Header.Get("X-Webhook-Signature"); !regexp.MustCompile(`^sha256=[0-9a-f]{64}$`).MatchString(s) {
				t.Errorf("signature %q", s)
			}
		}
		equal(t, "timestamp of the retry", got[1].Header.Get("X-Webhook-Timestamp"), strconv.FormatInt(start.Add(time.Minute).Unix(), 10))
	})
}

// TestKeyIsTheWholeSecret: with the secret of the vectors, the MAC is over time and exact bytes, and its key is not decoded.
func TestKeyIsTheWholeSecret(t *testing.T) {
	trace.Covers(t, "CCW-SIG-2", "CCW-SIG-3", "CCW-SIG-16")
	const payload = `{"id":"evt_01JHS0EXAMPLE00000000000AB","type":"project.created"}`
	const want = "sha256=5a83b76646137efea9b5e16c84712cad40f8458a7da415c64cd63365d8ea024f"
	equal(t, "vector by our helper", profile.SignSHA256([]byte(payload), testSecret, 1737100000), want)
	equal(t, "vector by the test's", mac(testSecret, "1737100000", []byte(payload)), want)

	r := newRig(t, apptest.Options{})
	r.want(201, apptest.Call{Path: "/v1/endpoints", Body: object{"url": r.sink.URL("/a"), "profile": "cybercube", "secret": testSecret}})
	r.data(202, apptest.Call{Path: base + "/events", Body: `{"type":"project.created","data":{"object":{"id":"P","object":"project" , "name":"\u00e9é",
		"created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"}}}`})
	q := r.sink.WaitOn("/a", 1)[0]
	verify(t, q, endpoint{Secret: testSecret})
	decoded := mac("0123456789abcdef0123456789abcdef", q.Header.Get("X-Webhook-Timestamp"), q.Body)
	if strings.Contains(q.Header.Get("X-Webhook-Signature"), decoded) {
		t.Error("it is signed with the decoded secret")
	}
}
