package ojs

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

var (
	subscriptionID = regexp.MustCompile(`^sub_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	mintedSecret   = regexp.MustCompile(`^whsec_[A-Za-z0-9_-]{43}$`)
)

func TestSubscriptionObject(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		create := func(body any) apptest.Call { return apptest.Call{Path: subscriptionsPath, Body: body} }
		total := func() any { return r.send(t, 200, apptest.Call{Path: subscriptionsPath})["total"] }

		t.Run("ids are the server's", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-2")
			seen := map[string]bool{}
			for i := range 100 {
				more := object{}
				if i == 50 {
					more["id"] = "sub_x"
				}
				s := r.subscribe("/ids", []string{"never"}, more)
				if seen[s.id] || !subscriptionID.MatchString(s.id) {
					t.Errorf("id %q", s.id)
				}
				seen[s.id] = true
			}
		})
		t.Run("a URL is required", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-3")
			before := total()
			for _, url := range []any{nil, "", "/x", "ftp://h/", "://", "https://", 7, "example.com/hook"} {
				r.send(t, 400, create(object{"events": []string{"*"}, "url": url}))
			}
			r.send(t, 400, create(`{"events":["*"]}`))
			if total() != before {
				t.Error("something was created")
			}
		})
		t.Run("events are required", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-4")
			before := total()
			for _, events := range []string{`null`, `[]`, `[1]`, `[""]`, `"*"`, `{}`} {
				r.send(t, 400, create(`{"url":"https://example.com/","events":`+events+`}`))
			}
			r.send(t, 400, create(`{"url":"https://example.com/"}`))
			if total() != before {
				t.Error("something was created")
			}
			for _, events := range []string{`["job.*"]`, `["job.completed"]`, `["*"]`} {
				r.send(t, 201, create(`{"url":"https://example.com/","events":`+events+`}`))
			}
		})
		t.Run("active by default", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-5")
			s := r.subscribe("/active", []string{"never"})
			if s.answer["active"] != true || r.read(s)["active"] != true {
				t.Errorf("%v", s.answer)
			}
			s = r.subscribe("/active", []string{"never"}, object{"active": false})
			if s.answer["active"] != false || r.read(s)["active"] != false {
				t.Errorf("%v", s.answer)
			}
		})
		t.Run("secrets are minted", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-7")
			a, b := r.subscribe("/secret", []string{"never"}), r.subscribe("/secret", []string{"never"})
			if !mintedSecret.MatchString(a.secret) || !mintedSecret.MatchString(b.secret) || a.secret == b.secret {
				t.Errorf("secrets %q and %q", a.secret, b.secret)
			}
		})
		t.Run("secrets are not shown again", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-8")
			for _, s := range []sub{r.subscribe("/hidden", []string{"never"}), r.subscribe("/hidden", []string{"never"}, object{"secret": "brought along by the client"})} {
				for name, got := range map[string]object{
					"get": r.read(s), "list": r.send(t, 200, apptest.Call{Path: subscriptionsPath + "?limit=200"}), "patch": r.patch(s, object{"active": true}),
				} {
					if hasKey(got, "secret") || occurs(got, s.secret) {
						t.Errorf("%s shows it: %v", name, got)
					}
				}
			}
		})
		t.Run("metadata is kept", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-9")
			meta := object{"description": "d", "owner": "o", "n": object{"x": 1.0, "list": []any{nil, true, "é"}}}
			s := r.subscribe("/meta", []string{"job.meta"}, object{"metadata": meta})
			if got := r.read(s)["metadata"]; !reflect.DeepEqual(got, meta) {
				t.Errorf("metadata %v", got)
			}
			r.publish("job.meta")
			if n := len(r.requests(s)); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
		t.Run("filters are lists of strings", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-10")
			filter := object{"queues": []any{"payments"}, "job_types": []any{"payment.process"}}
			s := r.subscribe("/filter", []string{"never"}, object{"filter": filter})
			if !reflect.DeepEqual(s.answer["filter"], filter) || !reflect.DeepEqual(r.read(s)["filter"], filter) {
				t.Errorf("filter %v", s.answer["filter"])
			}
			for _, wrong := range []any{"payments", []string{"payments"}, object{"queues": "payments"}, object{"job_types": 1}, object{"queues": []int{1}}, object{"queue": []string{"a"}}} {
				r.send(t, 400, create(object{"url": "https://example.com/", "events": []string{"*"}, "filter": wrong}))
			}
		})
		t.Run("creation is stamped once", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-11")
			r.Advance(time.Minute)
			s := r.subscribe("/stamp", []string{"never"}, object{"created_at": "1999-01-01T00:00:00Z"})
			text := s.answer["created_at"].(string)
			at, err := time.Parse(time.RFC3339, text)
			if err != nil || !strings.HasSuffix(text, "Z") || r.Clock.Now().Sub(at).Abs() > time.Second {
				t.Errorf("created_at %q", text)
			}
			r.Advance(time.Hour)
			if got := r.patch(s, object{"active": false})["created_at"]; got != text {
				t.Errorf("it became %v", got)
			}
		})
		t.Run("members", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-12")
			check := func(got object, want ...string) {
				t.Helper()
				var names []string
				for name, value := range got {
					if value == nil {
						t.Errorf("%s is null", name)
					}
					if name != "subscription" { // the same once more, for other readers
						names = append(names, name)
					}
				}
				slices.Sort(names)
				slices.Sort(want)
				if !slices.Equal(names, want) {
					t.Errorf("members %v, want %v", names, want)
				}
			}
			bare := r.subscribe("/bare", []string{"never"})
			check(bare.answer, "id", "url", "events", "active", "secret", "created_at")
			check(r.read(bare), "id", "url", "events", "active", "created_at")
			check(r.read(bare)["subscription"].(object), "id", "url", "events", "active", "created_at")
			full := r.subscribe("/full", []string{"never"}, object{"filter": object{"queues": []string{"a"}}, "metadata": object{"a": 1}, "timeout_seconds": 7, "headers": object{"X-A": "b"}})
			check(r.read(full), "id", "url", "events", "active", "created_at", "filter", "metadata", "timeout_seconds", "header_names")
		})
		t.Run("one URL for several", func(t *testing.T) {
			trace.Covers(t, "OJS-SUB-13")
			a, b := r.subscribe("/shared", []string{"job.shared"}), r.subscribe("/shared", []string{"job.shared"})
			r.publish("job.shared")
			requests := r.requests(a)
			if len(requests) != 2 || requests[0].Header.Get("X-OJS-Delivery-ID") == requests[1].Header.Get("X-OJS-Delivery-ID") {
				t.Fatalf("%d requests", len(requests))
			}
			secrets := map[string]string{a.id: a.secret, b.id: b.secret}
			for _, req := range requests {
				id := req.Header.Get("X-OJS-Subscription-ID")
				verify(t, req, secrets[id], r.Clock.Now())
				delete(secrets, id)
			}
			if len(secrets) != 0 {
				t.Errorf("not told: %v", secrets)
			}
		})
	})
}

// TestInactiveSubscriptions: new events do not go to an inactive subscription, and pending deliveries wait.
func TestInactiveSubscriptions(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-SUB-6")
		r := newRig(t, o)
		s := r.subscribe("/hook", []string{"job.*"})
		r.sink.Script("/hook", reply(500, 200)...)
		held := r.publish("job.held")
		r.settle()
		r.patch(s, object{"active": false})
		r.publish("job.missed")
		r.pass(time.Hour) // the retry falls due meanwhile
		if got := r.types(s); !slices.Equal(got, []string{"job.held"}) {
			t.Errorf("while inactive: %v", got)
		}
		if d := r.delivery(held, s); d.Status != "failed" || d.AttemptCount != 1 {
			t.Errorf("held: %+v", d)
		}
		r.patch(s, object{"active": true})
		r.publish("job.new")
		got := r.types(s)
		slices.Sort(got)
		if !slices.Equal(got, []string{"job.held", "job.held", "job.new"}) {
			t.Errorf("after: %v", got)
		}
		if d := r.delivery(held, s); d.Status != "delivered" || d.AttemptCount != 2 {
			t.Errorf("released: %+v", d)
		}
	})
}

// TestSubscriptionsOutliveTheProcess kills the real program.
func TestSubscriptionsOutliveTheProcess(t *testing.T) {
	trace.Covers(t, "OJS-SUB-1")
	t.Parallel()
	p := apptest.StartProcess(t, apptest.ProcessOptions{})
	sink := apptest.NewSink(t)
	client := p.NewClient()
	made := exchange(t, client, "POST", p.URL+subscriptionsPath, fmt.Sprintf(`{"url":%q,"events":["job.*"],"filter":{"queues":["a"]}}`, sink.URL("/hook")), http.StatusCreated)
	before := exchange(t, client, "GET", p.URL+subscriptionsPath+"/"+made["id"].(string), "", http.StatusOK)
	p.Kill()
	p.Restart()
	client = p.NewClient()
	if after := exchange(t, client, "GET", p.URL+subscriptionsPath+"/"+made["id"].(string), "", http.StatusOK); !reflect.DeepEqual(before, after) {
		t.Errorf("it is %v, was %v", after, before)
	}
	exchange(t, client, "POST", p.URL+eventsPath, `{"type":"job.done","source":"ojs://s","data":{"queue":"a"}}`, http.StatusAccepted)
	req := sink.WaitOn("/hook", 1)[0]
	if got := sign(made["secret"].(string), req.Header.Get("X-OJS-Timestamp"), req.Body); got != req.Header.Get("X-OJS-Signature") {
		t.Errorf("signature %q", req.Header.Get("X-OJS-Signature"))
	}
}
