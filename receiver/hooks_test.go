package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func TestHooks(t *testing.T) {
	trace.Covers(t, "CCW-RCV-10", "CCW-RCV-11", "CCW-RCV-14")
	var receipts []receiver.Receipt
	var failures []receiver.VerificationFailure
	var duplicates []receiver.Duplicate
	var reports []receiver.Report
	counts := map[string]int{}
	hooks := receiver.Hooks{
		OnReceipt:             func(r receiver.Receipt) { receipts = append(receipts, r) },
		OnVerificationFailure: func(f receiver.VerificationFailure) { failures = append(failures, f) },
		OnDuplicate:           func(d receiver.Duplicate) { duplicates = append(duplicates, d) },
		OnResult:              func(r receiver.Report) { reports = append(reports, r) },
		Count:                 func(metric string) { counts[metric]++ },
	}
	for _, m := range mechanisms() {
		if m.name != "cybercube" {
			continue
		}
		g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.Hooks = hooks })
		send := func(e event, good bool, status int) {
			t.Helper()
			req := g.make(m, e, good)
			req.Header.Set("Authorization", "Bearer top-secret")
			req.Header.Set("Cookie", "top-secret")
			req.Header.Set("X-Api-Key", "top-secret")
			req.Header.Set("X-Harmless", strings.Repeat("h", 300))
			g.want(g.do(req), status)
		}
		send(event{id: id("x")}, true, 200)
		send(event{id: id("x")}, true, 200)
		send(event{id: id("x"), body: `{"id":"` + id("x") + `","other":1}`}, true, 422)
		send(event{id: id("y")}, false, 401)
		send(event{id: id("y")}, false, 401)
		g.clock.Advance(time.Minute)
		send(event{id: id("y")}, false, 401)

		if len(receipts) != 6 || receipts[0] != (receiver.Receipt{Scheme: "cybercube", Method: "POST", Path: "/hooks", IP: "127.0.0.1"}) {
			t.Errorf("receipts %+v", receipts)
		}
		if counts[receiver.MetricVerificationFailed] != 3 || counts["webhook.verification.failed"] != 3 {
			t.Errorf("counted %v", counts)
		}
		if len(failures) != 3 || failures[0].Recent != 1 || failures[1].Recent != 2 || failures[2].Recent != 1 {
			t.Fatalf("failures %+v", failures)
		}
		f := failures[0]
		if f.Scheme != "cybercube" || f.Reason != receiver.ReasonMismatch || f.Error != "Signature mismatch" || f.IP != "127.0.0.1" ||
			len(f.Header.Get("X-Harmless")) != 256 || f.Header.Get("X-Webhook-Timestamp") == "" {
			t.Errorf("failure %+v", f)
		}
		for name, values := range f.Header {
			if strings.Contains(values[0], "top-secret") || strings.Contains(values[0], "sha256=") {
				t.Errorf("%s is told: %s", name, values)
			}
		}
		kinds := []receiver.DuplicateKind{receiver.DuplicateCompleted, receiver.DuplicateOtherPayload}
		if len(duplicates) != 2 || duplicates[0].Kind != kinds[0] || duplicates[1].Kind != kinds[1] || duplicates[0].EventID != id("x") {
			t.Errorf("duplicates %+v", duplicates)
		}
		want := []receiver.ReportKind{receiver.KindAccepted, receiver.KindReplayed, receiver.KindRefused, receiver.KindRefused}
		for i, kind := range want {
			if reports[i].Kind != kind {
				t.Errorf("report %d: %+v, want %s", i, reports[i], kind)
			}
		}
		if reports[0].EventType != "order.paid" || reports[0].Principal != "cybercube" || reports[3].Code != receiver.CodeUnauthenticated {
			t.Errorf("reports %+v", reports)
		}
		for _, line := range []string{`"verification failed"`, "127.0.0.1", "Signature mismatch"} {
			if !strings.Contains(g.log.String(), strings.Trim(line, `"`)) {
				t.Errorf("the log does not say %s: %s", line, g.log)
			}
		}
		if strings.Contains(g.log.String(), "top-secret") || strings.Contains(g.log.String(), "sha256=") {
			t.Errorf("a secret is in the log: %s", g.log)
		}
	}
}

// TestNothingSecretIsLogged: neither payload nor secret, at any level, by any scheme, whatever happens.
func TestNothingSecretIsLogged(t *testing.T) {
	trace.Covers(t, "EDS-SEC-CNF-2", "CCW-SEC-13")
	const marker = "MARKER-4711"
	for _, m := range mechanisms() {
		var told []string
		g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) {
			o.Hooks.OnError = func(err error, where string) { told = append(told, where) }
		})
		g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
			switch {
			case strings.HasSuffix(d.Key, "err") || strings.Contains(string(d.Body), `"n":2`):
				return nil, errors.New("failed")
			case strings.Contains(string(d.Body), `"n":3`):
				return receiver.Reject{Reason: "no"}, nil
			}
			return nil, nil
		}
		for _, n := range []string{"1", "2", "3"} {
			body := `{"id":"` + id(n) + `","marker":"` + marker + `","n":` + n + `}`
			g.do(g.make(m, event{id: id(n), body: body}, true))
			g.do(g.make(m, event{id: id(n), body: body}, true))
			g.do(g.make(m, event{id: id(n), body: body}, false))
		}
		log := g.log.String()
		for _, secret := range []string{marker, secretA, secretB, edsSecret("shop-1"), secretFor(false)} {
			if strings.Contains(log, secret) {
				t.Errorf("%s: %q is in the log:\n%s", m.name, secret, log)
			}
		}
		if len(told) == 0 || !strings.Contains(log, "verification failed") {
			t.Errorf("%s: nothing was logged at all", m.name)
		}
	}
}

// TestBrokenHooks: a metric that fails loses no event.
func TestBrokenHooks(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) {
		o.Hooks = receiver.Hooks{
			OnReceipt: func(receiver.Receipt) { panic(1) }, OnVerificationFailure: func(receiver.VerificationFailure) { panic(1) },
			OnDuplicate: func(receiver.Duplicate) { panic(1) }, OnResult: func(receiver.Report) { panic(1) },
			OnError: func(error, string) { panic(1) }, OnWarning: func(string) { panic(1) }, Count: func(string) { panic(1) },
		}
		o.Freshness.Off = true
	})
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	g.want(g.do(g.request(event{}.withDefaults())), 401)
	g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) { return nil, errors.New("x") }
	g.want(g.do(g.eds(event{id: id("y")})), 500)
}

func TestClientIP(t *testing.T) {
	var ip string
	g := newRig(t, func(o *receiver.Options) {
		o.ClientIP = func(req *http.Request) string { return req.Header.Get("X-Real-Ip") }
		o.Hooks.OnReceipt = func(r receiver.Receipt) { ip = r.IP }
	})
	req := g.request(event{}.withDefaults())
	req.Header.Set("X-Real-Ip", "203.0.113.9")
	g.do(req)
	if ip != "203.0.113.9" {
		t.Errorf("ip %q", ip)
	}
}

// TestValidation: after verification, before the handler.
func TestValidation(t *testing.T) {
	trace.Covers(t, "CCW-RCV-15")
	g := newRig(t, func(o *receiver.Options) {
		o.Validate = func(d *receiver.Delivery) error {
			var payload struct{ N *int }
			if d.JSON(&payload) != nil || payload.N == nil {
				return errors.New("n has to be a number")
			}
			return nil
		}
	})
	a := g.do(g.eds(event{id: id("x"), body: `{"n":"one"}`}))
	g.wantProblem(a, 400, receiver.CodePayloadInvalid)
	if !strings.Contains(a.Body, "n has to be a number") {
		t.Errorf("answer %s", a.Body)
	}
	req := g.eds(event{id: id("x"), body: `{"n":"one"}`})
	req.Header.Del("Signature")
	g.want(g.do(req), 401)
	g.wantCalls(0)
	g.want(g.do(g.eds(event{id: id("x"), body: `{"n":1}`})), 204) // nothing was remembered
	g.wantCalls(1)
}

func TestOptionsAreChecked(t *testing.T) {
	trace.Covers(t, "EDS-KEY-7")
	for name, o := range map[string]receiver.Options{
		"no scheme":                {Handler: accept},
		"no handler":               {Scheme: edsScheme},
		"no key":                   {Scheme: receiver.EDS{}, Handler: accept},
		"no principal":             {Scheme: receiver.EDS{Keys: []receiver.EDSKey{{ID: "a", Secret: edsSecret("a")}}}, Handler: accept},
		"no material":              {Scheme: receiver.EDS{Keys: []receiver.EDSKey{{ID: "a", Principal: "a"}}}, Handler: accept},
		"a short secret":           {Scheme: receiver.EDS{Keys: []receiver.EDSKey{{ID: "a", Principal: "a", Secret: "YQ=="}}}, Handler: accept},
		"no base64":                {Scheme: receiver.EDS{Keys: []receiver.EDSKey{{ID: "a", Principal: "a", Secret: "?"}}}, Handler: accept},
		"a key twice":              {Scheme: receiver.EDS{Keys: append(edsScheme.Keys, edsScheme.Keys...)}, Handler: accept},
		"an unknown component":     {Scheme: receiver.EDS{Keys: edsScheme.Keys, Components: []string{"@nonsense"}}, Handler: accept},
		"no digest":                {Scheme: receiver.EDS{Keys: edsScheme.Keys, Components: []string{"@method", "@target-uri", "idempotency-key"}}, Handler: accept},
		"no signed key":            {Scheme: receiver.EDS{Keys: edsScheme.Keys, Components: []string{"@method", "@target-uri", "content-digest"}}, Handler: accept},
		"ojs without secret":       {Scheme: receiver.OJS{}, Handler: accept},
		"an empty secret":          {Scheme: receiver.OJS{Secrets: []string{""}}, Handler: accept},
		"cybercube without secret": {Scheme: receiver.Cybercube{}, Handler: accept},
		"standard without key":     {Scheme: receiver.StandardWebhooks{}, Handler: accept},
		"standard, no base64":      {Scheme: receiver.StandardWebhooks{Keys: []string{"whsec_?"}}, Handler: accept},
		"standard, a short key":    {Scheme: receiver.StandardWebhooks{Keys: []string{"whpk_YQ=="}}, Handler: accept},
		"github without secret":    {Scheme: receiver.GitHub{}, Handler: accept},
		"stripe without secret":    {Scheme: receiver.Stripe{}, Handler: accept},
		"shopify without secret":   {Scheme: receiver.Shopify{}, Handler: accept},
		"slack without secret":     {Scheme: receiver.Slack{}, Handler: accept},
		"twilio without secret":    {Scheme: receiver.Twilio{}, Handler: accept},
		"paypal without webhook":   {Scheme: receiver.PayPal{Certificates: []string{paypalPEM()}}, Handler: accept},
		"paypal without key":       {Scheme: receiver.PayPal{WebhookID: "x"}, Handler: accept},
		"paypal, no PEM":           {Scheme: receiver.PayPal{WebhookID: "x", Certificates: []string{"x"}}, Handler: accept},
		"bearer without token":     {Scheme: receiver.Bearer{}, Handler: accept},
		"a token of nobody":        {Scheme: receiver.Bearer{Tokens: []receiver.Token{{Value: "x"}}}, Handler: accept},
		"basic without user":       {Scheme: receiver.Basic{}, Handler: accept},
		"a user without password":  {Scheme: receiver.Basic{Users: []receiver.User{{Name: "x"}}}, Handler: accept},
		"mtls without client":      {Scheme: receiver.MTLS{}, Handler: accept},
		"a client without name":    {Scheme: receiver.MTLS{Clients: []receiver.Client{{Principal: "x"}}}, Handler: accept},
		"no fingerprint":           {Scheme: receiver.MTLS{Clients: []receiver.Client{{Principal: "x", Fingerprint: "abc"}}}, Handler: accept},
		"an unfinished profile":    {Scheme: receiver.Profile{Name: "x"}, Handler: accept},
		"a negative tolerance":     {Scheme: edsScheme, Handler: accept, Freshness: receiver.Freshness{Tolerance: -2}},
		"no transactions":          {Scheme: edsScheme, Handler: accept, Transactional: true},
		"a key of no length":       {Scheme: edsScheme, Handler: accept, Key: receiver.KeyPolicy{Min: 30, Max: 20}},
	} {
		if _, err := receiver.New(o); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func lookup(calls *int) func(context.Context, string) (receiver.EDSKey, error) {
	return func(_ context.Context, id string) (receiver.EDSKey, error) {
		*calls++
		switch id {
		case "shop-1":
			return receiver.EDSKey{ID: id, Principal: "shop", Secret: edsSecret(id)}, nil
		case "bank-1":
			return receiver.EDSKey{}, errors.New("database is down")
		}
		return receiver.EDSKey{}, httpsig.ErrUnknownKey
	}
}
