package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestSketchIsExactEnough(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s Sketch
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(math.Exp(r.Float64()*26)) * time.Nanosecond // up to 195 s
		all = append(all, d)
		s.Add(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		exact := all[int(q*float64(len(all)-1))]
		got, ok := s.Quantile(q)
		if off := math.Abs(float64(got-exact)) / float64(max(exact, time.Microsecond)); !ok || off > 0.07 && exact > 10*time.Microsecond {
			t.Errorf("quantile %v is %v, exactly %v", q, got, exact)
		}
	}
	if _, ok := (Sketch{}).Quantile(0.5); ok {
		t.Error("an empty sketch has a quantile")
	}
	for _, d := range []time.Duration{-time.Second, 0, math.MaxInt64} {
		if i := bucketOf(d); i > maxBucket {
			t.Errorf("%v is in bucket %d", d, i)
		}
	}
	for i := uint16(0); i < maxBucket; i++ {
		if got := bucketOf(middle(i)); got != i {
			t.Errorf("the middle of bucket %d is in bucket %d", i, got)
		}
	}
}

// The numbers of causes are stored.
func TestCausesKeepTheirNumbers(t *testing.T) {
	want := []string{
		"other", "dns", "refused", "connect", "reset", "tls", "certificate", "timeout", "truncated", "protocol", "address", "redirect", "credential",
		"request", "server-error", "client-error", "response",
	}
	if !slices.Equal(CauseNames()[:len(want)], want) {
		t.Errorf("causes are %v", CauseNames())
	}
	for k := range causeKinds {
		if k.String() == "" || (Cause{Kind: k}).Advice() == "" {
			t.Errorf("cause %d lacks a name or advice", k)
		}
	}
	for _, kind := range []godwit.FailureKind{
		godwit.FailureDNS, godwit.FailureRefused, godwit.FailureConnect, godwit.FailureReset, godwit.FailureTLSHandshake, godwit.FailureTLSVerify, godwit.FailureTimeout,
		godwit.FailureTruncated, godwit.FailureStreamReset, godwit.FailureProtocol, godwit.FailureBlockedAddress, godwit.FailureRedirectForbidden,
		godwit.FailureRedirectLimit, godwit.FailureRedirectInvalid, godwit.FailureCredential, godwit.FailureInvalidRequest,
	} {
		if c := CauseOf(&godwit.Attempt{Verdict: godwit.Verdict{Reason: godwit.Reason(kind)}}); c.Kind == CauseOther {
			t.Errorf("%s has no cause of its own", kind)
		}
	}
}

func row(minute int64, endpoints ...byte) []byte {
	s := Segment{Tenant: godwit.TenantID{7}, Minute: minute, Events: 1}
	for _, e := range endpoints {
		d := godwit.Delivery{EndpointID: godwit.EndpointID{e}, Status: godwit.DeliveryTerminal, CreatedAt: time.Unix(minute*60-30, 0)}
		d.Run.Trigger = godwit.TriggerAccept
		a := godwit.Attempt{StartedAt: time.Unix(minute*60-20, 0), Duration: time.Second, Status: 503}
		s.Attempt(&d, &a)
		a.Verdict.Outcome, d.Status = godwit.Accepted, godwit.DeliveryAccepted
		s.Attempt(&d, &a)
		s.Delivery(d.EndpointID)
	}
	return s.Append(nil)
}

func TestMergedRowsHoldTheSameCounts(t *testing.T) {
	var m Merger
	for i := range 40 {
		for _, data := range [][]byte{row(100, 1, 2, byte(i+3)), append(row(101, 1), row(100, 2)...)} {
			if err := m.Add(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	owners := map[godwit.TenantID]Owner{{7}: {Environment: godwit.EnvironmentID{9}}}
	var server, endpoints Counts
	pages := map[Key]*Page{}
	rows := m.Rows(8)
	for _, data := range rows {
		deltas, err := Deltas(data, owners)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range deltas {
			if pages[d.Key] == nil {
				pages[d.Key] = &Page{}
			}
			if d.AddTo(pages[d.Key]) {
				t.Fatal("a page is damaged")
			}
		}
	}
	if len(rows) != 6 {
		t.Errorf("merged into %d rows", len(rows))
	}
	for k, p := range pages {
		if k.Level != Hour {
			continue
		}
		var sum Counts
		if err := eachSlot(p.Counts, 0, 23, func(_ int64, body []byte) error {
			r := reader{rest: body}
			sum.Add(r.counts())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		switch k.Kind {
		case OfServer:
			server = sum
		case OfEndpoint:
			endpoints.Add(sum)
		}
	}
	if want := (Counts{Events: 120, Acknowledged: 200, Failed: 200, Dead: 200}); server != want {
		t.Errorf("server: %+v", server)
	}
	if want := (Counts{Events: 200, Acknowledged: 200, Failed: 200, Dead: 200}); endpoints != want {
		t.Errorf("endpoints: %+v", endpoints)
	}
}

func TestDamagedRowsAndPages(t *testing.T) {
	good := row(100, 1, 2)
	for n := 1; n < len(good); n++ {
		var m Merger
		if m.Add(good[:n]) == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(good))
		}
		if len(m.segments) != 0 {
			t.Fatalf("a part of a damaged row counts")
		}
	}
	deltas, err := Deltas(good, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := Page{Counts: []byte{1, 200, 1}}
	if !deltas[0].AddTo(&p) {
		t.Error("a damaged page is not reported")
	}
	if deltas[0].AddTo(&p) {
		t.Error("a page is still damaged")
	}
}

func TestCover(t *testing.T) {
	const h, d = 3600, 86400
	for _, c := range []struct {
		since, until int64
		finest       Level
		want         []Span
	}{
		{60, 180, Minute, []Span{{Minute, 60, 180}}},
		{0, h, Minute, []Span{{Hour, 0, h}}},
		{60, 2*h + 60, Minute, []Span{{Minute, 60, h}, {Minute, 2 * h, 2*h + 60}, {Hour, h, 2 * h}}},
		{h, 2*d + h, Hour, []Span{{Hour, h, d}, {Hour, 2 * d, 2*d + h}, {Day, d, 2 * d}}},
		{0, 3 * d, Day, []Span{{Day, 0, 3 * d}}},
	} {
		if got := Cover(c.since, c.until, c.finest); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: %v", c.since, c.until, got)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add(row(100, 1, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Merger
		if m.Add(data) != nil {
			return
		}
		for _, merged := range m.Rows(4) {
			if _, err := Deltas(merged, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}
