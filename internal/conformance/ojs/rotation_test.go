package ojs

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// rotate replaces a subscription's secret and returns the new one.
func (r *rig) rotate(s sub, body ...object) string {
	r.t.Helper()
	call := apptest.Call{Method: "POST", Path: s.at("/rotate-secret")}
	if len(body) > 0 {
		call.Body = body[0]
	}
	got := r.send(r.t, 200, call)
	if occurs(got, s.secret) {
		r.t.Errorf("the old secret is shown: %v", got)
	}
	return got["secret"].(string)
}

// signed checks that a request has exactly the signatures of these secrets, in this order.
func signed(t testing.TB, req apptest.Request, secrets ...string) {
	t.Helper()
	var want []string
	for _, secret := range secrets {
		want = append(want, sign(secret, req.Header.Get("X-OJS-Timestamp"), req.Body))
	}
	if got := signatures(req); !slices.Equal(got, want) {
		t.Errorf("signatures %q, want %q", got, want)
	}
}

func TestRotation(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		s := r.subscribe("/hook", []string{"job.*"})
		last := func() apptest.Request {
			t.Helper()
			requests := r.requests(s)
			return requests[len(requests)-1]
		}
		r.publish("job.before")
		signed(t, last(), s.secret)
		second := r.rotate(s)
		t.Run("the new one signs", func(t *testing.T) {
			trace.Covers(t, "OJS-ROT-1")
			r.publish("job.after")
			if got := signatures(last())[0]; got != sign(second, last().Header.Get("X-OJS-Timestamp"), last().Body) {
				t.Errorf("signature %q", got)
			}
		})
		t.Run("both sign, in one field", func(t *testing.T) {
			trace.Covers(t, "OJS-ROT-2", "OJS-ROT-4")
			signed(t, last(), second, s.secret)
			if got := last().Header["X-Ojs-Signature"]; len(got) != 1 || !regexp.MustCompile(`^sha256=[0-9a-f]{64},sha256=[0-9a-f]{64}$`).MatchString(got[0]) {
				t.Errorf("field %q", got)
			}
		})
		t.Run("for a day", func(t *testing.T) {
			trace.Covers(t, "OJS-ROT-3")
			r.Advance(23*time.Hour + 59*time.Minute)
			r.publish("job.still")
			signed(t, last(), second, s.secret)
			r.Advance(2 * time.Minute)
			r.publish("job.over")
			signed(t, last(), second)
		})
		t.Run("or as long as is asked for", func(t *testing.T) {
			trace.Covers(t, "OJS-ROT-3")
			third := r.rotate(s, object{"overlap_seconds": 60})
			r.publish("job.short")
			signed(t, last(), third, second)
			r.Advance(61 * time.Second)
			r.publish("job.short")
			signed(t, last(), third)
			fourth := r.rotate(s, object{"overlap_seconds": 0})
			r.publish("job.atonce")
			signed(t, last(), fourth)
			for _, body := range []string{`{"overlap_seconds":-1}`, `{"overlap_seconds":"1"}`, `{"overlap_seconds":604801}`, `{"secret":"0123456789abcdef"}`, `[]`} {
				r.send(t, 400, apptest.Call{Method: "POST", Path: s.at("/rotate-secret"), Body: body})
			}
			r.publish("job.unchanged")
			signed(t, last(), fourth)
		})
		t.Run("pending retries take what is valid", func(t *testing.T) {
			trace.Covers(t, "OJS-ROT-7")
			p := r.subscribe("/pending", []string{"wait.*"})
			r.sink.Script("/pending", reply(500, 200)...)
			r.publish("wait.done")
			signed(t, r.requests(p)[0], p.secret)
			fresh := r.rotate(p)
			r.pass(schedule[0])
			signed(t, r.requests(p)[1], fresh, p.secret)
		})
		t.Run("at most two", func(t *testing.T) {
			trace.Covers(t, "OJS-ROT-8")
			q := r.subscribe("/twice", []string{"twice.*"})
			r.Advance(time.Minute)
			one := r.rotate(q)
			r.Advance(time.Minute)
			two := r.rotate(q)
			r.publish("twice.done")
			signed(t, r.requests(q)[0], two, one)
		})
		t.Run("of nothing", func(t *testing.T) {
			trace.Covers(t, "OJS-ROT-9")
			r.send(t, 404, apptest.Call{Method: "POST", Path: subscriptionsPath + "/sub_" + somewhere + "/rotate-secret"})
			u := r.subscribe("/unseen", []string{"never"})
			got := r.send(t, 200, apptest.Call{Method: "POST", Path: u.at("/rotate-secret")})
			if occurs(got, u.secret) {
				t.Errorf("%v", got)
			}
		})
	})
}

// TestOldSignatureAlone: a setting sends a single signature to receivers that cannot read a list (OT-15).
func TestOldSignatureAlone(t *testing.T) {
	trace.Covers(t, "OJS-ROT-3")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"})
	r.send(t, 200, apptest.Call{Method: "PATCH", Path: "/v1/endpoints/" + s.id, Body: `{"policy":{"rotation":"old-only"}}`})
	fresh := r.rotate(s)
	r.publish("job.done")
	signed(t, r.requests(s)[0], s.secret)
	r.Advance(24*time.Hour + time.Minute)
	r.publish("job.done")
	signed(t, r.requests(s)[1], fresh)
}
