package profile

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestCybercubeSchedule(t *testing.T) {
	trace.Covers(t, "CCW-RTY-5")
	for _, code := range []int{500, 429, 304, 0} {
		waits, last := failing(t, cybercube{}, answer(code))
		if want := seconds(60, 300, 1800, 7200, 28800, 86400); !slices.Equal(waits, want) {
			t.Errorf("%d: waits %v", code, waits)
		}
		if last.Status != godwit.DeliveryExhausted || last.Reason != godwit.ReasonAttemptsExhausted || !last.At.IsZero() {
			t.Errorf("%d: after the seventh attempt %+v", code, last)
		}
	}
}

func TestCybercubeClassification(t *testing.T) {
	p := cybercube{}
	for code := -1; code <= 700; code++ {
		want := godwit.Transient
		switch {
		case code >= 200 && code <= 299:
			want = godwit.Accepted
		case code >= 400 && code <= 499 && code != 429:
			want = godwit.Terminal
		}
		v := p.Classify(answer(code, "Location", "/x"), defaults(p), now)
		if v.Outcome != want || v.DisableEndpoint != (code == 410) || v.RefreshAndRetry || v.MoveTo != "" {
			t.Errorf("%d: %+v, want %s", code, v, want)
		}
	}
	retriesEveryFailure(t, p)
}

func TestCybercubeRetryAfterIsAFloor(t *testing.T) {
	for _, c := range []struct {
		status int
		value  string
		want   time.Duration
	}{
		{429, "300", 300 * time.Second}, {429, "7", 60 * time.Second}, {503, "300", 300 * time.Second}, {503, "7", 60 * time.Second},
		{500, "300", 60 * time.Second}, {429, "soon", 60 * time.Second}, {429, now.Add(2 * time.Minute).Format(http.TimeFormat), 2 * time.Minute},
	} {
		if waits, _ := failing(t, cybercube{}, answer(c.status, "Retry-After", c.value)); waits[0] != c.want {
			t.Errorf("%d with %s: %v, want %v", c.status, c.value, waits[0], c.want)
		}
	}
	if waits, last := failing(t, cybercube{}, answer(429, "Retry-After", "99999999")); len(waits) != 0 || last.Reason != godwit.ReasonRetryAfterBudget {
		t.Errorf("a wait of years: %v, then %+v", waits, last)
	}
}

func TestCybercubeKeys(t *testing.T) {
	trace.Covers(t, "CCW-SEC-1", "CCW-SEC-2")
	p := cybercube{}
	seen := map[string]bool{}
	for range 10000 {
		key, err := p.NewKey(godwit.AlgorithmHMAC)
		if err != nil {
			t.Fatal(err)
		}
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(key.Display, "whsec_"))
		if !textSecret.MatchString(key.Display) || err != nil || len(b) != 32 || seen[key.Display] {
			t.Fatalf("%s: %d bytes, %v", key.Display, len(b), err)
		}
		seen[key.Display] = true
	}
	const good = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	for text, ok := range map[string]bool{
		good: true, good[6:]: false, good + "=": false, good[:48]: false, good + "a": false, good[:48] + "+": false, "": false, "whsec_": false,
		good[:20] + "\n" + good[20:]: false, good[:48] + "Z": false, // not what 32 bytes encode to
	} {
		key, err := p.ImportKey(godwit.AlgorithmHMAC, text)
		if (err == nil) != ok || ok && (string(key.Secret) != text || key.Display != text) {
			t.Errorf("%q: %+v, %v", text, key, err)
		}
	}
}

func TestCybercubeEventIDs(t *testing.T) {
	trace.Covers(t, "CCW-EVT-13", "CCW-EVT-15", "CCW-EVT-16")
	form := regexp.MustCompile(`^evt_[A-Za-z0-9]{26}$`)
	last := ""
	for i := range 10000 {
		id := CybercubeEventID(&godwit.Event{ID: godwit.NewEventID(now.Add(time.Duration(i) * time.Millisecond))})
		if !form.MatchString(id) || url.PathEscape(id) != id || len(id) != 30 {
			t.Fatalf("%s", id)
		}
		if id <= last {
			t.Fatalf("%s sorts before %s, which is older", id, last)
		}
		last = id
	}
}

// The parts that a sender is made of do what the standard's generateSecret, sign and deliver do: a secret, a signed
// request with an id of its own, and a delivery that says what became of it.
func TestCybercubeSenderParts(t *testing.T) {
	trace.Covers(t, "CCW-SDK-12")
	p := cybercube{}
	key, err := p.NewKey(godwit.AlgorithmHMAC)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := p.NewSigner([]SigningKey{{ID: "sec_1", Algorithm: godwit.AlgorithmHMAC, Secret: key.Secret}})
	if err != nil {
		t.Fatal(err)
	}
	answers := []int{500, 200}
	var got []*http.Request
	var bodies [][]byte
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, bodies = append(got, r), append(bodies, b)
		w.WriteHeader(answers[len(got)-1])
	}))
	defer sink.Close()
	policy := defaults(p)
	m := message(godwit.FormatRaw, []byte(`{"name":"Customer Portal"}`))
	at := now
	var statuses []godwit.DeliveryStatus
	for range answers {
		m.ID = godwit.NewAttemptID(at)
		header, body := p.Render(m)
		r, err := http.NewRequest(http.MethodPost, sink.URL+"/hook?x=1", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		if err := signer.Sign(r, body, at); err != nil {
			t.Fatal(err)
		}
		resp, err := sink.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		run := &m.Delivery.Run
		if run.Attempts == 0 {
			run.FirstAt = at
		}
		run.Attempts++
		v := p.Classify(&godwit.Exchange{Status: resp.StatusCode, Header: resp.Header, URL: sink.URL}, policy, at)
		d := godwit.Decide(policy, &v, run, godwit.Moment{Now: at, Draw: func() float64 { return 0 }})
		statuses = append(statuses, d.Status)
		if d.Status == godwit.DeliveryPending {
			if d.At.Sub(at) != time.Minute {
				t.Errorf("next retry after %v", d.At.Sub(at))
			}
			at = d.At
		}
	}
	if !slices.Equal(statuses, []godwit.DeliveryStatus{godwit.DeliveryPending, godwit.DeliveryAccepted}) {
		t.Errorf("deliveries ended as %v", statuses)
	}
	id := regexp.MustCompile(`^wh_[0-9a-f]{24}$`)
	for i, r := range got {
		sentAt := now.Add(time.Duration(i) * time.Minute)
		if want := SignSHA256(bodies[i], key.Display, sentAt.Unix()); r.Header.Get("X-Webhook-Signature") != want || r.Header.Get("X-Webhook-Timestamp") != itoa(sentAt.Unix()) {
			t.Errorf("attempt %d is signed %s at %s", i+1, r.Header.Get("X-Webhook-Signature"), r.Header.Get("X-Webhook-Timestamp"))
		}
		if !id.MatchString(r.Header.Get("X-Webhook-ID")) || r.Header.Get("X-Webhook-Delivery-Attempt") != itoa(int64(i+1)) {
			t.Errorf("attempt %d: %v", i+1, r.Header)
		}
	}
	if len(got) != 2 || string(bodies[0]) != string(bodies[1]) || got[0].Header.Get("X-Webhook-ID") == got[1].Header.Get("X-Webhook-ID") {
		t.Errorf("%d requests; the second should differ in its id alone", len(got))
	}
	if got[0].Header.Get("X-Webhook-Retry-Count") != "" || got[1].Header.Get("X-Webhook-Retry-Count") != "1" ||
		got[1].Header.Get("X-Webhook-First-Attempt-At") != "2026-06-01T12:00:00Z" {
		t.Errorf("retry fields %v, then %v", got[0].Header, got[1].Header)
	}
}

func TestCybercubeDefaults(t *testing.T) {
	d := cybercube{}.Defaults()
	if !slices.Equal(d.Windows, []godwit.RateWindow{{Count: 1000, Per: time.Minute}, {Count: 100, Per: time.Second}}) || d.AccountPerMinute != 10000 {
		t.Errorf("limits %v, %d", d.Windows, d.AccountPerMinute)
	}
	if d.DisableAfterFailures != 11 || d.ReenableAfter != 24*time.Hour || d.DegradedAbove != 0.5 || !d.Alert || d.SkipWhilePaused || d.Announce {
		t.Errorf("health %+v", d)
	}
}
