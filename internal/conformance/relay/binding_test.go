package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// TestBindingIsWhole: sender, consumer and relay each implement all of the HTTP binding. Tests of each role show its rows;
// comparisons show that the relay behaves like the sender and like the consumer.
func TestBindingIsWhole(t *testing.T) {
	trace.Covers(t, "EDS-SCP-4", "EDS-INT-12")
	t.Run("every row is shown for its roles", everyRowIsShown)
	t.Run("the relay sends as the sender does", relaySendsAlike)
	t.Run("the relay receives as the consumer does", relayReceivesAlike)
}

// httpSections are the sections of the document that bind it to HTTP.
var httpSections = []string{"MTH", "AGR", "STA", "SUN", "RED", "PRB", "NET", "KEY", "RAF", "BKO", "INT", "VER"}

// showing are the packages whose tests show a row for a role.
var showing = map[string][]string{
	"sender":       {"internal/conformance.", "internal/profile.", "internal/sender.", "internal/godwit.", "internal/engine.", "internal/management.", "internal/api/", "internal/crashtest."},
	"consumer":     {"receiver", "internal/conformance/receiver.", "internal/conformance/relay.", "sdk/"},
	"intermediary": {"internal/conformance/relay."},
	"operator":     {""},
}

func everyRowIsShown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		id := strings.TrimPrefix(cells[0], "| ")
		part := strings.Split(id, "-")
		if len(cells) < 6 || len(part) < 3 || part[0] != "EDS" || !slices.Contains(httpSections, part[1]) {
			continue
		}
		rows++
		if cells[4] != "covered" {
			t.Errorf("%s is %s", id, cells[4])
		}
		if cells[1] == "MAY" {
			continue // one of the roles is enough to show that it may
		}
		for role := range strings.SplitSeq(cells[2], ", ") {
			packages, known := showing[role]
			if shown := strings.Split(strings.ReplaceAll(cells[5], "`", ""), "<br>"); !known || !anyPrefix(shown, packages) {
				t.Errorf("%s is not shown for the %s, only by %s", id, role, cells[5])
			}
		}
	}
	if rows < 80 {
		t.Errorf("only %d rows are there", rows)
	}
}

func anyPrefix(list, prefixes []string) bool {
	for _, item := range list {
		for _, p := range prefixes {
			if strings.HasPrefix(strings.TrimSpace(item), p) {
				return true
			}
		}
	}
	return false
}

// relaySendsAlike: an endpoint's responses have the same meaning for a relayed event as for a posted one.
func relaySendsAlike(t *testing.T) {
	r := newRig(t, apptest.Options{})
	s := r.storing("upstream")
	replies := map[string]apptest.Reply{
		"reset": apptest.Reset(), "hangup": apptest.Hangup(), "truncated": apptest.Truncated(200, 100, "half"), "not-http": apptest.Raw("220 mail\r\n"),
		"redirect": apptest.Redirect(307, "/elsewhere"), "moved": apptest.Redirect(302, "/elsewhere"), "after": apptest.RetryAfter(503, "30"), "early": apptest.Status(200).Early(103),
	}
	for _, status := range []int{200, 201, 202, 204, 203, 206, 207, 208, 226, 299, 300, 303, 304, 400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 414, 415, 418, 421, 422, 425,
		426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 507, 511, 599, 999} {
		replies[fmt.Sprint(status)] = apptest.Status(status)
	}
	attemptsOn := map[string]int{"401": 1} // that follow at once
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			r.sink.ReplyFunc("/"+name, func(*apptest.Request) apptest.Reply { return reply })
			var verdicts []godwit.Verdict
			var statuses []godwit.DeliveryStatus
			for _, relayed := range []bool{false, true} {
				ep := r.Endpoint(r.sink.URL("/"+name), apptest.Fields{"patterns": []string{"relayed.thing"}})
				var ev godwit.EventID
				if relayed {
					a := r.want(r.send(delivery{Path: s.Path, Key: key(name), Sign: bearer(s)}), 202)
					ev = a.event(t)
				} else {
					ev = r.Publish("relayed.thing", `{"n":1}`)
				}
				attempts := r.WaitAttempts(ev, ep, attemptsOn[name]+1)
				last := attempts[len(attempts)-1].Verdict
				last.Problem = nil
				verdicts, statuses = append(verdicts, last), append(statuses, r.Delivery(ev, ep).Status)
				r.Must(apptest.Call{Method: "DELETE", Path: "/v1/endpoints/" + ep.ID.String()}, nil)
			}
			if verdicts[0] != verdicts[1] || statuses[0] != statuses[1] {
				t.Errorf("posted: %+v %s\nrelayed: %+v %s", verdicts[0], statuses[0], verdicts[1], statuses[1])
			}
		})
	}
}

// relayReceivesAlike: a source answers requests as package receiver does.
func relayReceivesAlike(t *testing.T) {
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.MaxBody = 1000 }})
	r.Endpoint(r.sink.URL("/to"))
	s := r.storing("signed", apptest.Fields{"scheme": "eds", "event_type": apptest.Fields{"fixed": "x.y"}})
	made, err := receiver.New(receiver.Options{
		Scheme: receiver.EDS{Keys: []receiver.EDSKey{{ID: s.Issued.ID, Principal: "p", Secret: s.Issued.Secret}}}, Clock: r.Clock.Now, MaxBody: 1000,
		Log: slog.New(slog.DiscardHandler), Handler: func(context.Context, *receiver.Delivery) (receiver.Result, error) { return receiver.Accepted{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	alone := httptest.NewServer(made)
	t.Cleanup(alone.Close)
	other := &rig{Server: &apptest.Server{URL: alone.URL, Clock: r.Clock}, t: t}
	sign := func(change ...func(*httpsig.Params)) func(*http.Request, []byte) {
		return r.signEDS(s.Issued.ID, s.Issued.Secret, change...)
	}
	at := func(d time.Duration) func(*httpsig.Params) {
		return func(p *httpsig.Params) { p.Created = r.Clock.Now().Add(d) }
	}
	once := func(p *httpsig.Params) { p.Nonce = "one and the same" }
	for _, c := range []struct {
		name string
		d    delivery
		want int // its class, where the two speak of success in their own words
	}{
		{"good", delivery{Key: key("good"), Sign: sign()}, 2},
		{"again", delivery{Key: key("good"), Sign: sign()}, 2},
		{"another payload", delivery{Key: key("good"), Body: `{"n":2}`, Sign: sign()}, 422},
		{"no signature", delivery{Key: key("a")}, 401},
		{"an unknown key", delivery{Key: key("a"), Sign: r.signEDS("other", s.Issued.Secret)}, 401},
		{"another secret", delivery{Key: key("a"), Sign: r.signEDS(s.Issued.ID, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")}, 401},
		{"at the edge", delivery{Key: key("edge"), Sign: sign(at(-300 * time.Second))}, 2},
		{"too old", delivery{Key: key("a"), Sign: sign(at(-301 * time.Second))}, 401},
		{"too new", delivery{Key: key("a"), Sign: sign(at(301 * time.Second))}, 401},
		{"a nonce", delivery{Key: key("nonce"), Sign: sign(once)}, 2},
		{"the nonce again", delivery{Key: key("nonce"), Sign: sign(once)}, 401},
		{"no nonce", delivery{Key: key("a"), Sign: sign(func(p *httpsig.Params) { p.Nonce = "" })}, 401},
		{"altered", delivery{Key: key("a"), Sign: func(q *http.Request, b []byte) { sign()(q, append(b, ' ')) }}, 401},
		{"another type after signing", delivery{Key: key("a"), Sign: func(q *http.Request, b []byte) {
			sign()(q, b)
			q.Header.Set("Content-Type", "text/plain")
		}}, 401},
		{"another key after signing", delivery{Key: key("a"), Sign: func(q *http.Request, b []byte) {
			sign()(q, b)
			q.Header.Set("Idempotency-Key", quoted(key("b")))
		}}, 401},
		{"no key", delivery{Sign: sign()}, 400},
		{"a bare key", delivery{Header: http.Header{"Idempotency-Key": {"8e03978e-40d5-43e8-bc93-6894a57f9324"}}, Sign: sign()}, 400},
		{"a number", delivery{Header: http.Header{"Idempotency-Key": {"1234567890123456"}}, Sign: sign()}, 400},
		{"a short key", delivery{Key: "short", Sign: sign()}, 400},
		{"a list", delivery{Header: http.Header{"Idempotency-Key": {quoted(key("a")) + ", " + quoted(key("b"))}}, Sign: sign()}, 400},
		{"GET", delivery{Method: "GET", Key: key("a"), Sign: sign()}, 405},
		{"PUT", delivery{Method: "PUT", Key: key("a"), Sign: sign()}, 405},
		{"too large", delivery{Key: key("a"), Body: strings.Repeat(" ", 1001), Sign: sign()}, 413},
	} {
		toRelay, toReceiver := c.d, c.d
		toRelay.Path, toReceiver.Path = s.Path, "/hook"
		one, two := r.send(toRelay), other.send(toReceiver)
		same := one.Status == c.want && two.Status == c.want || one.Status/100 == c.want && two.Status/100 == c.want
		if one.Err != nil || two.Err != nil || !same || one.Header.Get("Allow") != two.Header.Get("Allow") ||
			(one.Header.Get("WWW-Authenticate") == "") != (two.Header.Get("WWW-Authenticate") == "") {
			t.Errorf("%s: the relay answers %d %v, the receiver %d %v, want %d", c.name, one.Status, one.Err, two.Status, two.Err, c.want)
		}
	}
}

// TestAgreedReading: both parties configure the agreed meaning of 207. If one of them has not, 207 has no special meaning.
func TestAgreedReading(t *testing.T) {
	trace.Covers(t, "EDS-AGR-2", "EDS-STA-207b")
	r := newRig(t, apptest.Options{})
	const document = "https://example.com/agreement"
	agreed := apptest.Fields{"multi_status": true, "agreement": apptest.Fields{"document": document, "visible_to_both": true}}
	for _, c := range []struct {
		name     string
		policy   apptest.Fields
		consumer string
		want     godwit.DeliveryStatus
		status   int
	}{
		{"both", agreed, document, godwit.DeliveryAccepted, 207},
		{"the consumer alone", apptest.Fields{}, document, godwit.DeliveryTerminal, 207},
		{"the sender alone", agreed, "", godwit.DeliveryPending, 500},
	} {
		var ep apptest.Endpoint
		var h http.Handler
		consumer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { h.ServeHTTP(w, q) }))
		t.Cleanup(consumer.Close)
		ep = r.Endpoint(consumer.URL, apptest.Fields{"patterns": []string{"x.y"}, "policy": c.policy})
		made, err := receiver.New(receiver.Options{
			Scheme: receiver.EDS{Keys: []receiver.EDSKey{{ID: ep.Secret.ID, Principal: "p", Secret: ep.Secret.Value}}}, Clock: r.Clock.Now,
			Log: slog.New(slog.DiscardHandler), MultiStatusAgreement: c.consumer, Handler: func(context.Context, *receiver.Delivery) (receiver.Result, error) {
				return receiver.Accepted{Status: 207, Body: []byte(`[{"status":200},{"status":201}]`)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		h = made
		ev := r.Publish("x.y", `{}`)
		if a := r.WaitAttempts(ev, ep, 1)[0]; a.Status != c.status || r.Delivery(ev, ep).Status != c.want {
			t.Errorf("%s: answered %d, which is %s", c.name, a.Status, r.Delivery(ev, ep).Status)
		}
		r.Must(apptest.Call{Method: "DELETE", Path: "/v1/endpoints/" + ep.ID.String()}, nil)
	}
}
