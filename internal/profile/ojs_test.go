package profile

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func defaults(p Profile) *godwit.Policy { d := p.Defaults(); return &d }

// failing is what follows each attempt of a delivery that is answered the same every time, without jitter: the waits.
func failing(t *testing.T, p Profile, x *godwit.Exchange) (waits []time.Duration, last godwit.Decision) {
	t.Helper()
	policy := defaults(p)
	at, run := now, godwit.Run{FirstAt: now}
	for range 20 {
		run.Attempts++
		v := p.Classify(x, policy, at)
		last = godwit.Decide(policy, &v, &run, godwit.Moment{Now: at, Draw: func() float64 { return 0 }})
		if last.Status != godwit.DeliveryPending {
			return waits, last
		}
		waits = append(waits, last.At.Sub(at))
		at = last.At
	}
	t.Fatal("it is tried for ever")
	return nil, last
}

func TestOJSSchedule(t *testing.T) {
	waits, last := failing(t, ojs{}, answer(500))
	var sum time.Duration
	for _, w := range waits {
		sum += w
	}
	want := seconds(30, 120, 600, 3600, 14400, 43200, 86400)
	if !slices.Equal(waits, want) || sum != 148350*time.Second || last.Status != godwit.DeliveryExhausted {
		t.Errorf("waits %v, %v in all, then %+v", waits, sum, last)
	}
	longest := answer(429, "Retry-After", "9999999999")
	if waits, last := failing(t, ojs{}, longest); len(waits) != 7 || waits[0] != 24*time.Hour || last.Reason != godwit.ReasonAttemptsExhausted {
		t.Errorf("under the longest waits: %v, then %+v", waits, last)
	}
}

func TestOJSClassification(t *testing.T) {
	p := ojs{}
	for code := -1; code <= 700; code++ {
		want := godwit.Transient
		switch {
		case code >= 200 && code <= 299:
			want = godwit.Accepted
		case code >= 400 && code <= 499 && code != 429:
			want = godwit.Terminal
		}
		v := p.Classify(answer(code, "Sunset", now.Format(http.TimeFormat), "Location", "/x"), defaults(p), now)
		if v.Outcome != want || v.DisableEndpoint || v.RefreshAndRetry || v.MoveTo != "" || !v.SunsetAt.IsZero() {
			t.Errorf("%d: %+v, want %s", code, v, want)
		}
		if (v.Class == godwit.ClassApplication) != (want != godwit.Accepted) {
			t.Errorf("%d: class %q", code, v.Class)
		}
	}
	retriesEveryFailure(t, p)
}

// retriesEveryFailure: no complete answer, try again, whatever kept it from coming.
func retriesEveryFailure(t *testing.T, p Profile) {
	t.Helper()
	for _, kind := range []godwit.FailureKind{
		godwit.FailureDNS, godwit.FailureRefused, godwit.FailureConnect, godwit.FailureReset, godwit.FailureTLSHandshake,
		godwit.FailureTLSVerify, godwit.FailureTimeout, godwit.FailureTruncated, godwit.FailureStreamReset, godwit.FailureProtocol,
		godwit.FailureBlockedAddress, godwit.FailureRedirectForbidden, godwit.FailureRedirectLimit, godwit.FailureRedirectInvalid,
		godwit.FailureCredential, godwit.FailureInvalidRequest,
	} {
		for _, seen := range []int{0, 200, 302, 404, 410, 429} { // a status line may have been seen: it does not count
			x := answer(seen, "Retry-After", "7")
			x.Failure = &godwit.Failure{Kind: kind, Sent: true}
			v := p.Classify(x, defaults(p), now)
			if v.Outcome != godwit.Transient || v.Reason != godwit.Reason(kind) || !v.ReceiverUnknown || v.DisableEndpoint || v.Review || v.RetryAfter != 0 {
				t.Errorf("%s with %s after %d: %+v", p.Name(), kind, seen, v)
			}
		}
	}
}

func TestOJSRetryAfterTakesThePlaceOfTheDelay(t *testing.T) {
	trace.Covers(t, "OJS-DLV-8")
	date := now.Add(90 * time.Second).Format(http.TimeFormat)
	for _, c := range []struct {
		status int
		value  string
		want   time.Duration
	}{
		{429, "7", 7 * time.Second}, {429, "300", 300 * time.Second}, {429, date, 90 * time.Second}, {429, "", 30 * time.Second},
		{429, "soon", 30 * time.Second}, {429, "-5", 30 * time.Second}, {429, now.Add(-time.Hour).Format(http.TimeFormat), 30 * time.Second},
		{429, "86401", 24 * time.Hour}, {429, strings.Repeat("9", 40), 24 * time.Hour}, {503, "7", 30 * time.Second}, {503, "300", 30 * time.Second},
	} {
		x := answer(c.status)
		if c.value != "" {
			x.Header.Set("Retry-After", c.value)
		}
		if waits, _ := failing(t, ojs{}, x); waits[0] != c.want || c.status == 429 && len(waits) != 7 {
			t.Errorf("%d with %q: %v of %d, want %v", c.status, c.value, waits[0], len(waits), c.want)
		}
	}
}

func TestAgreementsHoldInEveryDialect(t *testing.T) {
	for _, name := range []string{"ojs", "cybercube", "standard-webhooks"} {
		p, _ := Lookup(name)
		policy := defaults(p)
		policy.Statuses = map[int]godwit.Outcome{404: godwit.Transient, 500: godwit.Terminal, 410: godwit.Transient, 409: godwit.Accepted}
		for code, want := range policy.Statuses {
			if v := p.Classify(answer(code), policy, now); v.Outcome != want || v.Reason != godwit.ReasonAgreement || v.DisableEndpoint {
				t.Errorf("%s: %d under agreement: %+v", name, code, v)
			}
		}
		x := answer(207)
		x.Body = []byte(`[{"status":200},{"status":503}]`)
		if v := p.Classify(x, policy, now); v.Outcome != godwit.Accepted {
			t.Errorf("%s: 207 without agreement: %+v", name, v)
		}
		policy.MultiStatus = true
		if v := p.Classify(x, policy, now); v.Outcome != godwit.Transient || v.Reason != godwit.ReasonMultiElement {
			t.Errorf("%s: 207 under agreement: %+v", name, v)
		}
		y := answer(422, "Content-Type", "application/problem+json")
		y.Body = []byte(`{"title":"Bad"}`)
		if v := p.Classify(y, policy, now); v.Problem == nil || v.Problem.Title != "Bad" {
			t.Errorf("%s: what the receiver said is lost: %+v", name, v)
		}
	}
}

var textSecret = regexp.MustCompile(`^whsec_[A-Za-z0-9_-]{43}$`)

func TestOJSKeys(t *testing.T) {
	trace.Covers(t, "OJS-SUB-7")
	seen := map[string]bool{}
	for range 1000 {
		key, err := ojs{}.NewKey(godwit.AlgorithmHMAC)
		if err != nil || !textSecret.MatchString(key.Display) || string(key.Secret) != key.Display || key.Public != nil {
			t.Fatalf("%+v: %v", key, err)
		}
		if seen[key.Display] {
			t.Fatal("a secret came twice")
		}
		seen[key.Display] = true
	}
	for text, ok := range map[string]bool{
		strings.Repeat("a", 15): false, strings.Repeat("a", 16): true, strings.Repeat("é", 16): true, strings.Repeat("a", 256): true,
		strings.Repeat("a", 257): false, "a secret with spaces": true, "a secret\nof two lines": false, "broken UTF-8 \xff here": false,
		"": false, "whsec_test_conformance": true, strings.Repeat("a", 16) + "\x00": false, strings.Repeat("a", 16) + "\u200e": false,
	} {
		key, err := ojs{}.ImportKey(godwit.AlgorithmHMAC, text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if ok && (string(key.Secret) != text || key.Display != text) {
			t.Errorf("%q became %+v", text, key)
		}
		if err != nil && len(text) > 3 && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the secret: %v", err)
		}
	}
}

func TestDialectsRefuseForeignAlgorithms(t *testing.T) {
	for _, name := range Names() {
		p, _ := Lookup(name)
		_, newErr := p.NewKey("rot13")
		_, importErr := p.ImportKey("rot13", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY")
		_, signErr := p.NewSigner([]SigningKey{{ID: "sec_1", Algorithm: "rot13", Secret: make([]byte, 32)}})
		if newErr == nil || importErr == nil || signErr == nil {
			t.Errorf("%s: %v, %v, %v", name, newErr, importErr, signErr)
		}
		if !SupportsAlgorithm(p, godwit.AlgorithmHMAC) {
			t.Errorf("%s cannot sign symmetrically", name)
		}
	}
}

// Every default must be one that an endpoint could also ask for.
func TestDefaultsOfEveryDialectAreConsistent(t *testing.T) {
	for _, name := range Names() {
		p, _ := Lookup(name)
		if _, err := (&godwit.PolicyOverrides{}).Apply(p.Defaults()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		d := p.Defaults()
		longest := time.Duration(0)
		for i := range d.Schedule {
			longest += d.Schedule[i] + d.Schedule[i]/10 + d.Timeout
		}
		if len(d.Schedule) > 0 && (len(d.Schedule) != d.MaxRetries || longest > d.MaxElapsed) {
			t.Errorf("%s: %d delays of %v for %d retries in %v", name, len(d.Schedule), longest, d.MaxRetries, d.MaxElapsed)
		}
		if d.Timeout != 30*time.Second || d.Concurrency < 1 || d.HoldScope == "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := (ojs{}).Defaults(); !d.SkipWhilePaused || !d.Announce || !d.RetryAfterReplaces || d.CircuitAfter != 0 || d.DisableAfter != 0 || d.DisableAfterFailures != 0 {
		t.Errorf("ojs: %+v", d)
	}
	few := 4
	if _, err := (&godwit.PolicyOverrides{MaxRetries: &few}).Apply(ojs{}.Defaults()); err == nil {
		t.Error("ojs: fewer than five retries were taken")
	}
}
