package profile

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func answer(status int, header ...string) *godwit.Exchange {
	x := &godwit.Exchange{Status: status, URL: "https://receiver.example/hook", Header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		x.Header.Add(header[i], header[i+1])
	}
	return x
}

func policy() *godwit.Policy { p := eds{}.Defaults(); return &p }

func TestEveryStatusHasExactlyOneOutcome(t *testing.T) {
	trace.Covers(t, "EDS-OUT-1", "EDS-CLS-3", "EDS-AGR-1", "EDS-STA-GEN", "EDS-SRV-5")
	transient := map[int]bool{408: true, 409: true, 421: true, 425: true, 429: true, 308: true}
	for code := 200; code <= 599; code++ {
		want := godwit.Transient
		switch {
		case code == 207:
			want = godwit.Terminal
		case code < 300:
			want = godwit.Accepted
		case code < 500 && !transient[code]:
			want = godwit.Terminal
		}
		for _, x := range []*godwit.Exchange{
			answer(code, "Location", "/new"),
			answer(code, "Location", "/new", "Server", "x", "X-Whatever", "y", "Content-Type", "application/problem+json"),
		} {
			x.Body = []byte(fmt.Sprintf(`{"status": %d, "error": true}`, 999-code))
			if got := classifyEDS(x, policy(), now); got.Outcome != want {
				t.Errorf("%d: %s, want %s", code, got.Outcome, want)
			}
		}
	}
	for _, code := range []int{999, 99, 0, 600, -1} {
		if got := classifyEDS(answer(code), policy(), now); got.Outcome != godwit.Transient {
			t.Errorf("%d: %s", code, got.Outcome)
		}
	}
}

func TestEveryFailureHasAnOutcome(t *testing.T) {
	trace.Covers(t, "EDS-CLS-2")
	terminal := map[godwit.FailureKind]bool{godwit.FailureBlockedAddress: true, godwit.FailureRedirectForbidden: true}
	for _, kind := range []godwit.FailureKind{
		godwit.FailureDNS, godwit.FailureRefused, godwit.FailureConnect, godwit.FailureReset, godwit.FailureTLSHandshake,
		godwit.FailureTLSVerify, godwit.FailureTimeout, godwit.FailureTruncated, godwit.FailureStreamReset, godwit.FailureProtocol,
		godwit.FailureBlockedAddress, godwit.FailureRedirectForbidden, godwit.FailureRedirectLimit, godwit.FailureRedirectInvalid,
		godwit.FailureCredential, godwit.FailureInvalidRequest,
	} {
		x := answer(200) // a status line may have been seen: it does not count
		x.Failure = &godwit.Failure{Kind: kind, Sent: true}
		v := classifyEDS(x, policy(), now)
		if want := terminal[kind]; (v.Outcome == godwit.Terminal) != want || v.Outcome == godwit.Accepted {
			t.Errorf("%s: %s", kind, v.Outcome)
		}
		if v.Reason != godwit.Reason(kind) || !v.ReceiverUnknown {
			t.Errorf("%s: reason %s, unknown %v", kind, v.Reason, v.ReceiverUnknown)
		}
	}
}

func TestRetryAfterForms(t *testing.T) {
	trace.Covers(t, "EDS-RAF-4", "EDS-RAF-5", "EDS-RAF-6")
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		values []string
		want   time.Duration
	}{
		{nil, 0}, {[]string{"5"}, 5 * time.Second}, {[]string{" 7 "}, 7 * time.Second}, {[]string{"0"}, 0},
		{[]string{"-5"}, 0}, {[]string{"1.5"}, 0}, {[]string{"soon"}, 0}, {[]string{""}, 0}, {[]string{"+5"}, 0},
		{[]string{date(10 * time.Second)}, 10 * time.Second}, {[]string{date(-time.Hour)}, 0},
		{[]string{now.Add(10 * time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT")}, 10 * time.Second},
		{[]string{now.Add(10 * time.Second).Format(time.ANSIC)}, 10 * time.Second},
		{[]string{"3", "9", "nonsense", "4"}, 9 * time.Second},
		{[]string{"9999999999999999999999999999999999999999"}, maxRetryAfter},
		{[]string{"9223372036854775807"}, maxRetryAfter},
	} {
		x := answer(503)
		x.Header["Retry-After"] = c.values
		if got := classifyEDS(x, policy(), now); got.RetryAfter != c.want {
			t.Errorf("%q: %v, want %v", c.values, got.RetryAfter, c.want)
		}
	}
	for _, code := range []int{200, 422, 413, 301} {
		if got := classifyEDS(answer(code, "Retry-After", "1"), policy(), now); got.RetryAfter != 0 {
			t.Errorf("%d carries a wait of %v", code, got.RetryAfter)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("5")
	f.Add("Mon, 01 Jun 2026 12:00:10 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if d := parseRetryAfter(value, now); d < 0 || d > maxRetryAfter {
			t.Errorf("%q: %v", value, d)
		}
	})
}

func TestSunsetField(t *testing.T) {
	at := now.Add(time.Hour)
	if v := classifyEDS(answer(200, "Sunset", at.Format(http.TimeFormat)), policy(), now); !v.SunsetAt.Equal(at) {
		t.Errorf("sunset %v, want %v", v.SunsetAt, at)
	}
	if v := classifyEDS(answer(200, "Sunset", "next week"), policy(), now); !v.SunsetAt.IsZero() {
		t.Errorf("unparsable sunset gave %v", v.SunsetAt)
	}
}

func TestAgreedStatuses(t *testing.T) {
	trace.Covers(t, "EDS-AGR-2")
	p := policy()
	p.Statuses = map[int]godwit.Outcome{404: godwit.Transient, 409: godwit.Terminal, 206: godwit.Transient, 410: godwit.Transient}
	for code, want := range p.Statuses {
		v := classifyEDS(answer(code), p, now)
		if v.Outcome != want || v.Reason != godwit.ReasonAgreement || v.DisableEndpoint {
			t.Errorf("%d under agreement: %+v", code, v)
		}
	}
	if v := classifyEDS(answer(404), policy(), now); v.Outcome != godwit.Terminal {
		t.Errorf("404 elsewhere: %s", v.Outcome)
	}
}

func TestUnauthorizedIsTerminalAndMayRenewOnce(t *testing.T) {
	renewing, fixed := policy(), policy()
	fixed.RefreshOn401 = false
	for p, want := range map[*godwit.Policy]bool{renewing: true, fixed: false} {
		if v := classifyEDS(answer(401), p, now); v.Outcome != godwit.Terminal || v.Reason != godwit.ReasonUnauthorized || v.RefreshAndRetry != want {
			t.Errorf("renewing %v: %+v", want, v)
		}
		if v := classifyEDS(answer(403), p, now); v.Outcome != godwit.Terminal || v.RefreshAndRetry {
			t.Errorf("403: %+v", v)
		}
	}
}

func TestMultiStatusUnderAgreement(t *testing.T) {
	trace.Covers(t, "EDS-STA-207a", "EDS-STA-207b")
	p := policy()
	p.MultiStatus = true
	for body, want := range map[string]godwit.Outcome{
		`[{"status":200},{"status":201}]`:                godwit.Accepted,
		`{"responses":[{"status":200},{"status":503}]}`:  godwit.Transient,
		`[{"status":503},{"status":422},{"status":200}]`: godwit.Terminal,
		`[]`: godwit.Terminal, ``: godwit.Terminal, `{"ok":true}`: godwit.Terminal, `[{"status":"200"}]`: godwit.Terminal,
		`[{"status":200},{"id":7}]`: godwit.Terminal,
		`<D:multistatus xmlns:D="DAV:"><D:response><D:status>HTTP/1.1 200 OK</D:status></D:response></D:multistatus>`:                              godwit.Accepted,
		`<D:multistatus xmlns:D="DAV:"><D:response><D:propstat><D:status>HTTP/1.1 423 Locked</D:status></D:propstat></D:response></D:multistatus>`: godwit.Terminal,
	} {
		x := answer(207)
		x.Body = []byte(body)
		if v := classifyEDS(x, p, now); v.Outcome != want {
			t.Errorf("%s: %s, want %s", body, v.Outcome, want)
		}
		if v := classifyEDS(x, policy(), now); v.Outcome != godwit.Terminal || v.Reason != godwit.ReasonMultiStatus || !v.Review {
			t.Errorf("%s without agreement: %+v", body, v)
		}
	}
}

func FuzzMultiStatus(f *testing.F) {
	f.Add([]byte(`[{"status":200}]`))
	f.Add([]byte(`<a><response><status>HTTP/1.1 200</status></response></a>`))
	f.Fuzz(func(_ *testing.T, body []byte) { multiStatusCodes(body) })
}

func TestProblemDetailsAdviseOnly(t *testing.T) {
	trace.Covers(t, "EDS-PRB-2")
	for _, c := range []struct {
		status int
		body   string
		want   godwit.Outcome
	}{
		{503, `{"status":422,"title":"t"}`, godwit.Transient}, {422, `{"status":503}`, godwit.Terminal},
		{200, `{"status":500}`, godwit.Accepted}, {503, `{not json`, godwit.Transient}, {422, `[]`, godwit.Terminal},
		{422, `{"type":7,"title":["x"],"status":"422","detail":null}`, godwit.Terminal},
	} {
		x := answer(c.status, "Content-Type", "application/problem+json; charset=utf-8")
		x.Body = []byte(c.body)
		if v := classifyEDS(x, policy(), now); v.Outcome != c.want {
			t.Errorf("%d with %s: %s, want %s", c.status, c.body, v.Outcome, c.want)
		}
	}
	x := answer(422, "Content-Type", "application/problem+json")
	x.Body = []byte(`{"type":"https://e/x","title":"Bad","status":422,"detail":"order_id is empty"}`)
	if p := classifyEDS(x, policy(), now).Problem; p == nil || p.Type != "https://e/x" || p.Title != "Bad" || p.Status != 422 || p.Detail != "order_id is empty" {
		t.Errorf("kept %+v", p)
	}
}

func FuzzProblem(f *testing.F) {
	f.Add([]byte(`{"type":"x"}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		x := answer(422, "Content-Type", "application/problem+json")
		x.Body = body
		problemDetails(x)
	})
}

func TestExcerptCutsBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 5, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"a\xff", 9, "a\uFFFD"}} {
		if got := Excerpt(c.s, c.n); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.s, c.n, got, c.want)
		}
	}
}
