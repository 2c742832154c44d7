// Package ojs tests the rows of the Open Job Spec's Webhook Delivery document on the whole product, table by table in the
// order of the document: the real app, real stores, real sockets, a manual clock. It contains only tests.
package ojs

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
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

const (
	subscriptionsPath = "/ojs/v1/webhooks/subscriptions"
	deliveriesPath    = "/ojs/v1/webhooks/deliveries"
	eventsPath        = "/ojs/v1/events"
)

// start is the initial time of the clock. It is at the end of a microsecond, so that the store's microseconds and the
// engine's nanoseconds agree on what is due.
var start = time.Date(2026, 7, 1, 12, 0, 0, 999, time.UTC)

// schedule is the document's table: the delay before each further attempt.
var schedule = []time.Duration{
	30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// object is decoded JSON.
type object = map[string]any

// A rig is a server with a manual clock and without jitter, and a receiver.
type rig struct {
	*apptest.Server
	t    testing.TB
	sink *apptest.Sink
}

func newRig(t testing.TB, o apptest.Options) *rig {
	t.Helper()
	if o.Clock == nil {
		o.Clock = clock.NewManual(start)
	}
	tune := o.Tune
	o.Tune = func(c *engine.Config) {
		c.LeaseTTL = 100000 * time.Hour // other suites test the ownership of deliveries
		c.Draw = func() float64 { return 0 }
		if tune != nil {
			tune(c)
		}
	}
	return &rig{t: t, sink: apptest.NewSink(t), Server: apptest.Start(t, o)}
}

// again starts another server on the data of this one, at the time it ended.
func (r *rig) again() *rig {
	r.t.Helper()
	if err := r.Stop(); err != nil {
		r.t.Errorf("server ended: %v", err)
	}
	next := newRig(r.t, apptest.Options{Data: r.Config.Data, Store: r.Config.Store, Clock: r.Clock})
	next.sink = r.sink
	return next
}

// send makes a request whose answer must have the status, and decodes it.
func (r *rig) send(t testing.TB, status int, c apptest.Call) object {
	t.Helper()
	resp := r.Call(c)
	if resp.Status != status {
		t.Fatalf("%s %s: %d, want %d\n%s", c.Method, c.Path, resp.Status, status, resp.Body)
	}
	var got object
	if len(resp.Body) > 0 {
		resp.JSON(t, &got)
	}
	return got
}

// A sub is a subscription that a test made.
type sub struct {
	apptest.Endpoint
	id, path, secret string
	answer           object // to its creation
}

// at is the path of the subscription in the API.
func (s sub) at(suffix string) string { return subscriptionsPath + "/" + s.id + suffix }

// subscribe makes a subscription at a path of the sink, for these types.
func (r *rig) subscribe(path string, types []string, more ...object) sub {
	r.t.Helper()
	return r.subscribeURL(r.sink.URL(path), types, more...)
}

func (r *rig) subscribeURL(url string, types []string, more ...object) sub {
	r.t.Helper()
	body := object{"url": url, "events": types}
	for _, m := range more {
		maps.Copy(body, m)
	}
	return r.made(r.send(r.t, http.StatusCreated, apptest.Call{Path: subscriptionsPath, Body: body}))
}

func (r *rig) made(answer object) sub {
	r.t.Helper()
	s := sub{answer: answer, id: answer["id"].(string)}
	s.secret, _ = answer["secret"].(string)
	s.path = strings.TrimPrefix(answer["url"].(string), r.sink.URL(""))
	id, err := godwit.ParseEndpointID(s.id)
	if err != nil {
		r.t.Fatalf("id %q: %v", s.id, err)
	}
	s.ID = id
	return s
}

// patch changes a subscription.
func (r *rig) patch(s sub, body object) object {
	r.t.Helper()
	return r.send(r.t, http.StatusOK, apptest.Call{Method: "PATCH", Path: s.at(""), Body: body})
}

// read reads a subscription.
func (r *rig) read(s sub) object {
	r.t.Helper()
	return r.send(r.t, http.StatusOK, apptest.Call{Path: s.at("")})
}

// envelope is an event of this type; members that are nil are left out.
func envelope(kind string, more ...object) object {
	body := object{"type": kind, "source": "ojs://test/workers/1", "data": object{"queue": "payments", "job_type": "payment.process"}}
	for _, m := range more {
		maps.Copy(body, m)
	}
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	return body
}

// publish posts an event and returns its id.
func (r *rig) publish(kind string, more ...object) godwit.EventID {
	r.t.Helper()
	return r.Post(apptest.Call{Path: eventsPath, Body: envelope(kind, more...)})
}

// job is what an event says about its job.
func job(queue, jobType string) object {
	data := object{}
	if queue != "" {
		data["queue"] = queue
	}
	if jobType != "" {
		data["job_type"] = jobType
	}
	return object{"data": data}
}

// pass advances the clock and waits for the deliveries that fall due.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	r.Advance(d)
	r.settle()
}

// passDays advances the clock in steps that let every timer fire.
func (r *rig) passDays(n int) {
	r.t.Helper()
	for range n {
		r.pass(24 * time.Hour)
	}
}

// settle waits until everything that is due has been attempted and recorded; then nothing more can be sent at this time.
func (r *rig) settle() {
	r.t.Helper()
	var waiting []godwit.Delivery
	r.WaitRecorded("rest", func() bool { waiting = r.due(); return len(waiting) == 0 },
		func() string { return fmt.Sprintf("%d due deliveries, the first: %+v", len(waiting), waiting[0]) })
}

// due lists the tenant's deliveries that may be sent at this moment.
func (r *rig) due() []godwit.Delivery {
	r.t.Helper()
	var due []godwit.Delivery
	active := map[godwit.EndpointID]bool{}
	page := store.Page{Limit: 200}
	for {
		part, err := r.App.Store().ListDeliveries(context.Background(),
			store.DeliveryFilter{Status: godwit.DeliveryPending, TenantID: r.Tenant, Until: r.Clock.Now().Add(time.Hour)}, page)
		if err != nil {
			r.t.Fatalf("list pending deliveries: %v", err)
		}
		for _, d := range part {
			if _, asked := active[d.EndpointID]; !asked {
				active[d.EndpointID] = r.sendsTo(d.EndpointID)
			}
			if !d.DueAt.After(r.Clock.Now()) && active[d.EndpointID] {
				due = append(due, d)
			}
		}
		if len(part) < page.Limit {
			return due
		}
		page.After = part[len(part)-1].ID
	}
}

func (r *rig) sendsTo(id godwit.EndpointID) bool {
	r.t.Helper()
	e, err := r.App.Store().Endpoint(context.Background(), r.Tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	if err != nil {
		r.t.Fatalf("read endpoint: %v", err)
	}
	return e.Status == godwit.EndpointActive
}

// requests returns the requests that reached a subscription, after everything due has been sent.
func (r *rig) requests(s sub) []apptest.Request {
	r.t.Helper()
	r.settle()
	path, _, _ := strings.Cut(s.path, "?")
	return r.sink.Requests(path)
}

// types are the types of events that reached a subscription, in order.
func (r *rig) types(s sub) []string {
	r.t.Helper()
	list := []string{}
	for _, req := range r.requests(s) {
		list = append(list, req.Header.Get("X-OJS-Event-Type"))
	}
	return list
}

// A deliveryView is a delivery as the API shows it.
type deliveryView struct {
	ID             string     `json:"id"`
	SubscriptionID string     `json:"subscription_id"`
	EventID        string     `json:"event_id"`
	EventType      string     `json:"event_type"`
	Status         string     `json:"status"`
	Reason         string     `json:"reason"`
	AttemptCount   int        `json:"attempt_count"`
	NextAttemptAt  *time.Time `json:"next_attempt_at"`
	CreatedAt      time.Time  `json:"created_at"`
	CompletedAt    *time.Time `json:"completed_at"`
	Attempts       []struct {
		Number       int       `json:"number"`
		StartedAt    time.Time `json:"started_at"`
		StatusCode   int       `json:"status_code"`
		DurationMS   int64     `json:"duration_ms"`
		Error        string    `json:"error"`
		ResponseBody string    `json:"response_body"`
	} `json:"attempts"`
}

// codes are the status codes of the attempts.
func (d *deliveryView) codes() []int {
	var codes []int
	for _, a := range d.Attempts {
		codes = append(codes, a.StatusCode)
	}
	return codes
}

// delivery reads the delivery of an event to a subscription.
func (r *rig) delivery(ev godwit.EventID, s sub) deliveryView {
	r.t.Helper()
	var d deliveryView
	r.Must(apptest.Call{Path: deliveriesPath + "/" + r.Delivery(ev, s.Endpoint).ID.String()}, &d)
	return d
}

// list lists deliveries.
func (r *rig) list(query string) []deliveryView {
	r.t.Helper()
	var got struct {
		Deliveries []deliveryView `json:"deliveries"`
	}
	r.Must(apptest.Call{Path: deliveriesPath + "?" + query}, &got)
	return got.Deliveries
}

// retry sends a delivery again by hand.
func (r *rig) retry(t testing.TB, status int, id string) object {
	t.Helper()
	return r.send(t, status, apptest.Call{Method: "POST", Path: deliveriesPath + "/" + id + "/retry"})
}

// sign is the document's signature.
func sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// signatures are the entries of a request's signature field.
func signatures(req apptest.Request) []string {
	return strings.Split(req.Header.Get("X-OJS-Signature"), ",")
}

// verify checks a request like a receiver whose clock shows now: one signature, fresh, over these bytes.
func verify(t testing.TB, req apptest.Request, secret string, now time.Time) {
	t.Helper()
	timestamp := req.Header.Get("X-OJS-Timestamp")
	if got, want := req.Header.Get("X-OJS-Signature"), sign(secret, timestamp, req.Body); got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)).Abs(); err != nil || age > 5*time.Minute {
		t.Errorf("timestamp %q at %v", timestamp, now)
	}
}

// decoded is the body of a request.
func decoded(t testing.TB, req apptest.Request) object {
	t.Helper()
	var body object
	if err := json.Unmarshal(req.Body, &body); err != nil {
		t.Fatalf("body %q: %v", req.Body, err)
	}
	return body
}

// occurs reports whether a text occurs in a JSON value.
func occurs(v any, text string) bool {
	b, err := json.Marshal(v)
	return err != nil || strings.Contains(string(b), text)
}

// hasKey reports whether an object has a member of this name, at any depth.
func hasKey(v any, name string) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if key == name || hasKey(member, name) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if hasKey(item, name) {
				return true
			}
		}
	}
	return false
}

func reply(codes ...int) []apptest.Reply {
	var list []apptest.Reply
	for _, code := range codes {
		list = append(list, apptest.Status(code))
	}
	return list
}
