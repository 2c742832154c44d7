package cybercube

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }

// start is the initial time of a rig's clock. Stores keep microseconds, the engine nanoseconds. The clock always stands at
// the end of a microsecond, so that both agree on what is due.
var start = time.Date(2026, 7, 1, 12, 0, 0, 999, time.UTC)

const base = "/api/v1/webhooks"

// A rig is a server with a manual clock and without jitter, and a receiver.
type rig struct {
	*apptest.Server
	t    testing.TB
	sink *apptest.Sink
}

// newRig starts a server. Leases outlast every jump of the clock, because other suites test ownership.
func newRig(t testing.TB, o apptest.Options) *rig {
	t.Helper()
	if o.Clock == nil {
		o.Clock = clock.NewManual(start)
	}
	tune := o.Tune
	o.Tune = func(c *engine.Config) {
		c.LeaseTTL = 100_000 * time.Hour
		c.Draw = func() float64 { return 0 }
		if tune != nil {
			tune(c)
		}
	}
	return &rig{t: t, sink: apptest.NewSink(t), Server: apptest.Start(t, o)}
}

// again starts another server on the data of this one, at the time it ended.
func (r *rig) again(o apptest.Options) *rig {
	r.t.Helper()
	if err := r.Stop(); err != nil {
		r.t.Fatalf("server ended: %v", err)
	}
	o.Data, o.Store, o.Clock = r.Config.Data, r.Config.Store, r.Clock
	next := newRig(r.t, o)
	next.sink = r.sink
	return next
}

// object is a JSON object.
type object map[string]any

// An endpoint is one that a test registered.
type endpoint struct {
	ID     string
	Secret string
	URL    string
}

// endpoint registers a path of the sink for all events.
func (r *rig) endpoint(path string, members ...object) endpoint {
	r.t.Helper()
	return r.register(r.sink.URL(path), members...)
}

func (r *rig) register(url string, members ...object) endpoint {
	r.t.Helper()
	body := object{"url": url}
	for _, m := range members {
		for name, value := range m {
			body[name] = value
		}
	}
	var made struct{ Data endpoint }
	r.want(http.StatusCreated, apptest.Call{Path: base + "/endpoints", Body: body}).JSON(r.t, &made)
	return made.Data
}

// want sends a request and requires the status.
func (r *rig) want(status int, c apptest.Call) *apptest.Response {
	r.t.Helper()
	got := r.Call(c)
	if got.Status != status {
		r.t.Fatalf("%s %s: %d, want %d\n%s", c.Method, c.Path, got.Status, status, got.Body)
	}
	return got
}

// data sends a request that must succeed and returns the contents of its envelope.
func (r *rig) data(status int, c apptest.Call) object {
	r.t.Helper()
	var whole struct{ Data object }
	r.want(status, c).JSON(r.t, &whole)
	return whole.Data
}

// list returns the entries of a list.
func (r *rig) list(path string) []object {
	r.t.Helper()
	var whole struct{ Data []object }
	r.want(http.StatusOK, apptest.Call{Path: base + path}).JSON(r.t, &whole)
	return whole.Data
}

func (r *rig) show(ep endpoint) object {
	r.t.Helper()
	return r.data(http.StatusOK, apptest.Call{Path: base + "/endpoints/" + ep.ID})
}

func (r *rig) patch(ep endpoint, change object) object {
	r.t.Helper()
	return r.data(http.StatusOK, apptest.Call{Method: http.MethodPatch, Path: base + "/endpoints/" + ep.ID, Body: change})
}

func (r *rig) logs(ep endpoint, query string) []object {
	r.t.Helper()
	return r.list("/endpoints/" + ep.ID + "/logs" + query)
}

func (r *rig) failures(ep endpoint) []object {
	r.t.Helper()
	return r.list("/endpoints/" + ep.ID + "/failures")
}

// policy sets members that the standard does not have, by the native API.
func (r *rig) policy(ep endpoint, policy object) {
	r.t.Helper()
	r.want(http.StatusOK, apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/" + ep.ID, Body: object{"policy": policy}})
}

// project is the resource of most events.
func project(members ...object) object {
	p := object{"id": "PRJ-X2M8KD-F", "object": "project", "name": "A", "created_at": "2026-01-17T12:00:00Z", "updated_at": "2026-01-17T12:00:00Z"}
	for _, m := range members {
		for name, value := range m {
			p[name] = value
		}
	}
	return p
}

// post posts an event and returns its id.
func (r *rig) post(event object) string {
	r.t.Helper()
	return r.data(http.StatusAccepted, apptest.Call{Path: base + "/events", Body: event})["id"].(string)
}

// publish posts an event about a project.
func (r *rig) publish(eventType string, members ...object) string {
	r.t.Helper()
	return r.post(object{"type": eventType, "data": object{"object": project(members...)}})
}

func (r *rig) replay(id string, ep endpoint) object {
	r.t.Helper()
	return r.data(http.StatusAccepted, apptest.Call{Path: base + "/events/" + id + "/replay", Body: object{"endpoint_id": ep.ID}})
}

// pass advances the clock and waits for the deliveries that fall due.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	r.Advance(d)
	r.settle()
}

// settle waits until everything that may be sent now has been attempted and recorded.
func (r *rig) settle() {
	r.t.Helper()
	r.WaitUntilNoneIsDue(r.due)
}

func (r *rig) due() []godwit.Delivery {
	now := r.Clock.Now()
	var due []godwit.Delivery
	active := map[godwit.EndpointID]bool{}
	for _, d := range r.Pending() {
		if d.DueAt.After(now) {
			continue
		}
		if _, asked := active[d.EndpointID]; !asked {
			e, err := r.App.Store().Endpoint(context.Background(), r.Tenant, d.EndpointID)
			if err != nil {
				r.t.Fatalf("read endpoint: %v", err)
			}
			active[d.EndpointID] = e.Status == godwit.EndpointActive
		}
		if active[d.EndpointID] {
			due = append(due, d)
		}
	}
	return due
}

// schedule lists the delay before each retry.
var schedule = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 8 * time.Hour, 24 * time.Hour}

// exhaust advances the clock through the whole schedule.
func (r *rig) exhaust() {
	r.t.Helper()
	r.settle()
	for _, d := range schedule {
		r.pass(d)
	}
}

// body decodes a delivered body.
func body(t testing.TB, r apptest.Request) object {
	t.Helper()
	var o object
	if err := json.Unmarshal(r.Body, &o); err != nil {
		t.Fatalf("body is not JSON: %v\n%s", err, r.Body)
	}
	return o
}

// mac is the standard's signature, computed without our code.
func mac(secret, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(timestamp + "."))
	h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}

// signedBy lists which of the secrets signed a request, in the order of the signatures; "?" is none of them.
func signedBy(r apptest.Request, secrets ...string) []string {
	var by []string
	for signature := range strings.SplitSeq(r.Header.Get("X-Webhook-Signature"), ",") {
		who := "?"
		for _, s := range secrets {
			if hmac.Equal([]byte(signature), []byte(mac(s, r.Header.Get("X-Webhook-Timestamp"), r.Body))) {
				who = s
			}
		}
		by = append(by, who)
	}
	return by
}

// verify checks that a request is signed by the endpoint's secret alone.
func verify(t testing.TB, r apptest.Request, ep endpoint) {
	t.Helper()
	if by := signedBy(r, ep.Secret); len(by) != 1 || by[0] != ep.Secret {
		t.Errorf("%s is not signed by the endpoint's secret: %q", r.Path, r.Header.Get("X-Webhook-Signature"))
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sameJSON compares two JSON values by meaning.
func sameJSON(t testing.TB, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var x, y any
	_ = json.Unmarshal(g, &x)
	_ = json.Unmarshal(w, &y)
	gs, _ := json.Marshal(x)
	ws, _ := json.Marshal(y)
	if string(gs) != string(ws) {
		t.Errorf("%s:\n got %s\nwant %s", what, gs, ws)
	}
}

// attempts reads an endpoint's stored attempts, oldest first.
func (r *rig) attempts(ep endpoint) []godwit.Attempt {
	r.t.Helper()
	logged, err := r.App.Store().ListAttempts(context.Background(), store.AttemptFilter{TenantID: r.Tenant, EndpointID: r.stored(ep).ID}, 1000)
	if err != nil {
		r.t.Fatalf("list attempts: %v", err)
	}
	all := make([]godwit.Attempt, len(logged))
	for i := range logged {
		all[len(logged)-1-i] = logged[i].Attempt
	}
	return all
}

// stored reads an endpoint from the store.
func (r *rig) stored(ep endpoint) *godwit.Endpoint {
	r.t.Helper()
	e, err := r.App.Management().Endpoints.Resolve(context.Background(), r.Tenant, ep.ID)
	if err != nil {
		r.t.Fatalf("find endpoint: %v", err)
	}
	return e
}

func decode(t testing.TB, r *apptest.Response) object {
	t.Helper()
	var o object
	r.JSON(t, &o)
	return o
}

// until polls for a condition that no attempt signals. The condition queries the store, which limits the rate.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s", what)
		}
	}
}
