// Package relay tests the rows about an Intermediary on the whole product: upstreams deliver to /in/{source}, and endpoints
// receive the events.
package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

const patience = 5 * time.Minute

// A rig is a server whose time is moved by hand, and a sink for its deliveries.
type rig struct {
	*apptest.Server
	t    testing.TB
	sink *apptest.Sink
}

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func newRig(t testing.TB, o apptest.Options) *rig {
	t.Helper()
	if o.Clock == nil {
		o.Clock = clock.NewManual(start)
	}
	tune := o.Tune
	o.Tune = func(c *engine.Config) {
		c.LeaseTTL = 10000 * time.Hour
		if tune != nil {
			tune(c)
		}
	}
	return &rig{Server: apptest.Start(t, o), t: t, sink: apptest.NewSink(t)}
}

// A source is one that a test registered.
type source struct {
	ID         string `json:"id"`
	Path       string `json:"path"`
	PublicPath string `json:"public_path"`
	Mode       string `json:"mode_in_force"`
	Suffix     string `json:"key_id_suffix"`
	Issued     struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	} `json:"issued"`
}

// Source registers an upstream that shows a bearer token; fields say otherwise.
func (r *rig) Source(name string, fields ...apptest.Fields) source {
	r.t.Helper()
	body := apptest.Fields{"name": name, "scheme": "bearer", "event_type": apptest.Fields{"fixed": "relayed.thing"}}
	for _, f := range fields {
		for k, v := range f {
			body[k] = v
		}
	}
	var made source
	r.Must(apptest.Call{Path: "/v1/sources", Body: body}, &made)
	return made
}

// description reads the service description's version.
func (r *rig) version() string {
	r.t.Helper()
	var d struct {
		Version string `json:"version"`
	}
	r.Must(apptest.Call{Path: "/.well-known/webhook-service"}, &d)
	return d.Version
}

func (r *rig) acknowledge(s source) {
	r.t.Helper()
	r.Must(apptest.Call{Path: "/v1/sources/" + s.ID + "/acknowledgments", Body: apptest.Fields{"version": r.version(), "by": "Ada, Upstream Inc."}}, nil)
}

// storing registers a source that is answered once an event is stored.
func (r *rig) storing(name string, fields ...apptest.Fields) source {
	r.t.Helper()
	s := r.Source(name, fields...)
	r.acknowledge(s)
	return s
}

// A delivery is what an upstream sends.
type delivery struct {
	Path    string
	Method  string
	Key     string // decoded; "" sends none
	Body    string
	Header  http.Header
	Context context.Context // nil: none that ends
	// Sign completes the request.
	Sign func(*http.Request, []byte)
}

// An answer is what the upstream got.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
	At     time.Time

	ID         string `json:"id"`
	Key        string `json:"idempotency_key"`
	Mode       string `json:"mode"`
	Code       string `json:"code"`
	Downstream []struct {
		Status  int    `json:"status"`
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	} `json:"downstream"`
}

func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// bearer shows the token of a source.
func bearer(s source) func(*http.Request, []byte) {
	return func(r *http.Request, _ []byte) { r.Header.Set("Authorization", "Bearer "+s.Issued.Secret) }
}

var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// send makes the request of an upstream.
func (r *rig) send(d delivery) answer {
	if d.Method == "" {
		d.Method = http.MethodPost
	}
	if d.Body == "" {
		d.Body = `{"n":1}`
	}
	if d.Context == nil {
		d.Context = context.Background()
	}
	req, err := http.NewRequestWithContext(d.Context, d.Method, r.URL+d.Path, strings.NewReader(d.Body))
	if err != nil {
		return answer{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	if d.Key != "" {
		req.Header.Set("Idempotency-Key", quoted(d.Key))
	}
	for name, values := range d.Header {
		req.Header[name] = values
		if values == nil {
			delete(req.Header, name)
		}
	}
	if d.Sign != nil {
		d.Sign(req, []byte(d.Body))
	}
	resp, err := plain.Do(req)
	if err != nil {
		return answer{Err: err}
	}
	defer resp.Body.Close()
	a := answer{Status: resp.StatusCode, Header: resp.Header, At: time.Now()}
	a.Body, a.Err = io.ReadAll(resp.Body)
	_ = json.Unmarshal(a.Body, &a) // a problem, a receipt, or neither
	return a
}

// begin sends without waiting.
func (r *rig) begin(d delivery) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- r.send(d) }()
	return done
}

func (r *rig) await(done <-chan answer) answer {
	r.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case a := <-done:
		return a
	case <-limit.C:
		r.t.Fatal("the upstream was not answered")
		return answer{}
	}
}

// timer waits until a timer is set for this moment; only then does moving the clock there have an effect.
func (r *rig) timer(at time.Time) {
	r.t.Helper()
	if !r.Clock.Await(at, patience) {
		r.t.Fatalf("nobody waits for %s", at)
	}
}

// want fails the test unless the answer has the status.
func (r *rig) want(a answer, status int) answer {
	r.t.Helper()
	if a.Err != nil || a.Status != status {
		r.t.Fatalf("answered %d, want %d: %v\n%s", a.Status, status, a.Err, a.Body)
	}
	return a
}

func (a *answer) event(t testing.TB) godwit.EventID {
	t.Helper()
	id, err := godwit.ParseEventID(a.ID)
	if err != nil {
		t.Fatalf("no event in %d %s", a.Status, a.Body)
	}
	return id
}

// signEDS signs as an upstream does, with the server's time.
func (r *rig) signEDS(id, secret string, more ...func(*httpsig.Params)) func(*http.Request, []byte) {
	return func(req *http.Request, body []byte) {
		key, err := httpsig.NewHMACKey(id, decode(r.t, secret))
		if err != nil {
			r.t.Fatal(err)
		}
		components := httpsig.DeliveryComponents()
		if req.Header.Get("Idempotency-Key") == "" { // what is not there cannot be signed
			components = components[:len(components)-1]
		}
		signer, err := httpsig.NewSigner(components...)
		if err != nil {
			r.t.Fatal(err)
		}
		if req.Header.Get("Content-Digest") == "" {
			req.Header.Set("Content-Digest", httpsig.ContentDigest(body))
		}
		p := httpsig.Params{Keys: []httpsig.Key{key}, Created: r.Clock.Now(), Nonce: nonce(), Keep: true}
		for _, f := range more {
			f(&p)
		}
		if err := signer.SignRequest(req, p); err != nil {
			r.t.Fatal(err)
		}
	}
}

var nonces = make(chan int, 1)

func nonce() string {
	select {
	case n := <-nonces:
		nonces <- n + 1
		return fmt.Sprint("nonce-", n)
	default:
		nonces <- 2
		return "nonce-1"
	}
}

// key makes a fresh one.
func key(name string) string { return name + strings.Repeat("-", max(0, 24-len(name))) }

// sameBody fails unless a request has these bytes and this media type.
func sameBody(t testing.TB, got *apptest.Request, media, body string) {
	t.Helper()
	if got.Header.Get("Content-Type") != media || !bytes.Equal(got.Body, []byte(body)) {
		t.Errorf("arrived as %q %q, sent as %q %q", got.Header.Get("Content-Type"), got.Body, media, body)
	}
}
