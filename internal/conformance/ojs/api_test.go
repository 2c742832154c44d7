package ojs

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// somewhere is an id that no object has.
const somewhere = "019539a4-b68c-7def-8000-aabbccddeeff"

func TestOperations(t *testing.T) {
	trace.Covers(t, "OJS-API-1")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"})
	ev := r.publish("job.done")
	r.settle()
	del := deliveriesPath + "/" + r.delivery(ev, s).ID
	operations := []struct {
		method, path, body string
	}{
		{"POST", subscriptionsPath, `{"url":"https://example.com/","events":["*"]}`},
		{"GET", subscriptionsPath, ""},
		{"GET", s.at(""), ""},
		{"PATCH", s.at(""), `{}`},
		{"POST", s.at("/test"), ""},
		{"POST", s.at("/rotate-secret"), ""},
		{"GET", deliveriesPath, ""},
		{"GET", del, ""},
		{"POST", del + "/retry", ""},
		{"DELETE", s.at(""), ""},
	}
	allowed := map[string][]string{}
	for _, op := range operations {
		call := apptest.Call{Method: op.method, Path: op.path}
		if op.body != "" {
			call.Body = op.body
		}
		if resp := r.Call(call); resp.Status == 404 || resp.Status == 405 || resp.Status >= 500 {
			t.Errorf("%s %s: %d %s", op.method, op.path, resp.Status, resp.Body)
		}
		allowed[op.path] = append(allowed[op.path], op.method)
	}
	for path, methods := range allowed {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if slices.Contains(methods, method) || method == "PUT" && path == s.at("") { // an alias of PATCH (decision 10)
				continue
			}
			resp := r.Call(apptest.Call{Method: method, Path: path})
			if resp.Status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, resp.Status)
			}
			for _, m := range methods {
				if !strings.Contains(resp.Header.Get("Allow"), m) {
					t.Errorf("%s %s: Allow %q", method, path, resp.Header.Get("Allow"))
				}
			}
		}
	}
	for _, path := range []string{"/ojs/v1/webhooks/", "/ojs/v1/webhooks/endpoints", s.at("/pause"), del + "/cancel"} {
		r.send(t, 404, apptest.Call{Path: path})
		r.send(t, 404, apptest.Call{Method: "POST", Path: path})
	}
}

func TestManagement(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		t.Run("create", func(t *testing.T) {
			trace.Covers(t, "OJS-API-2")
			body := `{"url":"https://api.example.com/webhooks/ojs","events":["job.completed","job.failed"],"filter":{"queues":["payments"]},"metadata":{"description":"Payment job monitoring"}}`
			resp := r.Call(apptest.Call{Path: subscriptionsPath, Body: body})
			var got object
			resp.JSON(t, &got)
			if resp.Status != 201 || resp.Header.Get("Location") != subscriptionsPath+"/"+got["id"].(string) {
				t.Errorf("%d, Location %q", resp.Status, resp.Header.Get("Location"))
			}
			nested, _ := got["subscription"].(object)
			for name, want := range map[string]any{
				"url": "https://api.example.com/webhooks/ojs", "events": []any{"job.completed", "job.failed"}, "filter": object{"queues": []any{"payments"}},
				"active": true, "metadata": object{"description": "Payment job monitoring"},
			} {
				if !reflect.DeepEqual(got[name], want) || !reflect.DeepEqual(nested[name], want) {
					t.Errorf("%s is %v and %v", name, got[name], nested[name])
				}
			}
			if !subscriptionID.MatchString(got["id"].(string)) || !mintedSecret.MatchString(got["secret"].(string)) || got["created_at"] == nil {
				t.Errorf("created %v", got)
			}
			if resp := r.Call(apptest.Call{Path: resp.Header.Get("Location")}); resp.Status != 200 {
				t.Errorf("at its location: %d", resp.Status)
			}
		})
		t.Run("create as the public tools do", func(t *testing.T) {
			trace.Covers(t, "OJS-API-2") // with the secret and the media type of decisions 9 and 10
			got := r.send(t, 201, apptest.Call{Path: subscriptionsPath, Header: map[string]string{"Content-Type": "application/openjobspec+json", "Accept": "application/openjobspec+json"},
				Body: object{"url": r.sink.URL("/tools"), "events": []string{"job.tools"}, "secret": "whk_test_secret_001"}})
			s := r.made(got["subscription"].(object))
			r.publish("job.tools")
			verify(t, r.requests(s)[0], "whk_test_secret_001", r.Clock.Now())
			got = r.send(t, 200, apptest.Call{Method: "PUT", Path: s.at(""), Body: `{"events":["a","b","c"]}`})
			if !reflect.DeepEqual(got["subscription"].(object)["events"], []any{"a", "b", "c"}) {
				t.Errorf("put: %v", got)
			}
		})
		t.Run("nothing of a bad request", func(t *testing.T) {
			trace.Covers(t, "OJS-API-4")
			before := r.send(t, 200, apptest.Call{Path: subscriptionsPath})["total"]
			for _, body := range []string{`{`, ``, `[]`, `{}`, `{"url":"https://a.example/","events":["*"],"secret":"whsec_x"}`, `{"url":"https://a.example/","events":["*"],"secret":1}`} {
				got := r.send(t, 400, apptest.Call{Method: "POST", Path: subscriptionsPath, Body: body})
				e := got["error"].(object)
				if e["code"] != "invalid_request" || e["message"] == "" || e["retryable"] != false || e["request_id"] == "" || e["details"] == nil {
					t.Errorf("%s: %v", body, got)
				}
			}
			if after := r.send(t, 200, apptest.Call{Path: subscriptionsPath})["total"]; after != before {
				t.Errorf("%v subscriptions, were %v", after, before)
			}
		})
		t.Run("get", func(t *testing.T) {
			trace.Covers(t, "OJS-API-6")
			s := r.subscribe("/get", []string{"never"}, object{"metadata": object{"a": "b"}})
			got := r.read(s)
			for name, want := range s.answer {
				if name != "secret" && name != "subscription" && !reflect.DeepEqual(got[name], want) {
					t.Errorf("%s is %v, was %v", name, got[name], want)
				}
			}
			if hasKey(got, "secret") {
				t.Errorf("got %v", got)
			}
			for _, id := range []string{"sub_" + somewhere, "x", "del_" + somewhere} {
				if got := r.send(t, 404, apptest.Call{Path: subscriptionsPath + "/" + id}); got["error"].(object)["code"] != "not_found" {
					t.Errorf("%s: %v", id, got)
				}
			}
		})
		t.Run("update", func(t *testing.T) {
			trace.Covers(t, "OJS-API-7")
			s := r.subscribe("/update", []string{"job.before"}, object{"filter": object{"queues": []string{"payments"}}, "metadata": object{"a": 1}})
			before := r.read(s)
			got := r.patch(s, object{"active": false})
			if got["active"] != false || hasKey(got, "secret") {
				t.Errorf("updated %v", got)
			}
			after := r.read(s)
			for name := range before {
				if name != "active" && name != "subscription" && !reflect.DeepEqual(before[name], after[name]) {
					t.Errorf("%s became %v", name, after[name])
				}
			}
			got = r.patch(s, object{"events": []string{"job.completed", "job.failed", "job.after"}, "active": true})
			if !reflect.DeepEqual(got["events"], []any{"job.completed", "job.failed", "job.after"}) || got["active"] != true {
				t.Errorf("updated %v", got)
			}
			r.publish("job.before")
			r.publish("job.after")
			if got := r.types(s); !slices.Equal(got, []string{"job.after"}) {
				t.Errorf("received %v", got)
			}
			if got := r.patch(s, object{"filter": nil, "metadata": nil}); got["filter"] != nil || got["metadata"] != nil || hasKey(got, "filter") {
				t.Errorf("cleared: %v", got)
			}
			r.send(t, 404, apptest.Call{Method: "PATCH", Path: subscriptionsPath + "/sub_" + somewhere, Body: `{}`})
		})
		t.Run("delete", func(t *testing.T) {
			trace.Covers(t, "OJS-API-9")
			s := r.subscribe("/delete", []string{"job.deleted"})
			r.send(t, 204, apptest.Call{Method: "DELETE", Path: s.at("")})
			r.publish("job.deleted")
			if n := len(r.requests(s)); n != 0 {
				t.Errorf("%d requests", n)
			}
			r.send(t, 404, apptest.Call{Path: s.at("")})
			r.send(t, 404, apptest.Call{Method: "DELETE", Path: s.at("")})
			if list := r.send(t, 200, apptest.Call{Path: subscriptionsPath + "?limit=200"}); occurs(list["subscriptions"], s.id) {
				t.Errorf("it is still listed")
			}
		})
	})
}

// TestUpdateIsCheckedLikeCreation, on a server that takes https alone.
func TestUpdateIsCheckedLikeCreation(t *testing.T) {
	trace.Covers(t, "OJS-API-8")
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.AllowHTTP = false }})
	got := r.send(t, 201, apptest.Call{Path: subscriptionsPath, Body: `{"url":"https://example.com/x","events":["*"]}`})
	at := subscriptionsPath + "/" + got["id"].(string)
	before := r.send(t, 200, apptest.Call{Path: at})
	for _, body := range []string{
		`{"url":"http://example.com/x"}`, `{"url":"/x"}`, `{"url":null}`, `{"events":[]}`, `{"events":["*.x"]}`, `{"active":"no"}`, `{"filter":{"queues":1}}`,
		`{"filter":{"zone":["a"]}}`, `{"metadata":"m"}`, `{"timeout_seconds":61}`, `{"id":"sub_x"}`, `{"secret":"0123456789abcdef"}`, `{"created_at":"2020-01-01T00:00:00Z"}`,
		`{"active":false,"url":"ftp://h/"}`,
	} {
		r.send(t, 400, apptest.Call{Method: "PATCH", Path: at, Body: body})
		r.send(t, 400, apptest.Call{Method: "PUT", Path: at, Body: body})
	}
	if after := r.send(t, 200, apptest.Call{Path: at}); !reflect.DeepEqual(after, before) {
		t.Errorf("it is %v, was %v", after, before)
	}
}

func TestListSubscriptions(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-API-5")
		r := newRig(t, o)
		var ids []string
		for range 3 {
			ids = append(ids, r.subscribe("/hook", []string{"never"}).id)
			r.Advance(10 * time.Millisecond)
		}
		slices.Reverse(ids) // newest first
		idsOf := func(got object) (list []string) {
			for _, item := range got["subscriptions"].([]any) {
				list = append(list, item.(object)["id"].(string))
			}
			return list
		}
		all := r.send(t, 200, apptest.Call{Path: subscriptionsPath})
		page := all["pagination"].(object)
		if !slices.Equal(idsOf(all), ids) || all["total"] != 3.0 || page["total"] != 3.0 || page["has_more"] != false || hasKey(all, "secret") {
			t.Errorf("all: %v", all)
		}
		first := r.send(t, 200, apptest.Call{Path: subscriptionsPath + "?limit=2"})
		page = first["pagination"].(object)
		if !slices.Equal(idsOf(first), ids[:2]) || page["has_more"] != true {
			t.Errorf("first page: %v", first)
		}
		second := r.send(t, 200, apptest.Call{Path: subscriptionsPath + "?limit=2&cursor=" + page["next_cursor"].(string)})
		if !slices.Equal(idsOf(second), ids[2:]) || second["pagination"].(object)["has_more"] != false {
			t.Errorf("second page: %v", second)
		}
		for _, query := range []string{"limit=0", "limit=201", "cursor=nonsense"} {
			r.send(t, 400, apptest.Call{Path: subscriptionsPath + "?" + query})
		}
		for range 49 {
			r.subscribe("/hook", []string{"never"})
		}
		if n := len(idsOf(r.send(t, 200, apptest.Call{Path: subscriptionsPath}))); n != 50 {
			t.Errorf("%d without a limit", n)
		}
		if n := len(idsOf(r.send(t, 200, apptest.Call{Path: subscriptionsPath + "?limit=200"}))); n != 52 {
			t.Errorf("%d with the largest limit", n)
		}
	})
}

// TestDeletionCancels: deliveries that wait for a deleted subscription are not sent.
func TestDeletionCancels(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-API-10")
		r := newRig(t, o)
		fence := r.subscribe("/fence", []string{"fence"})
		r.sink.Script("/hook", apptest.Status(500))
		s := r.subscribe("/hook", []string{"job.*"})
		ev := r.publish("job.done")
		r.settle()
		id := r.delivery(ev, s).ID
		r.send(t, 204, apptest.Call{Method: "DELETE", Path: s.at("")})
		for range 48 {
			r.pass(time.Hour)
		}
		cancelled := func() bool {
			return r.send(t, 200, apptest.Call{Path: deliveriesPath + "/" + id})["status"] == "cancelled"
		}
		for range 2000 { // the sweep that ends it runs beside everything else
			if cancelled() {
				break
			}
			r.Advance(time.Minute)
			r.WaitDelivery(r.publish("fence"), fence.Endpoint, godwit.DeliveryAccepted)
		}
		if !cancelled() {
			t.Error("it is not cancelled")
		}
		if n := len(r.sink.Requests("/hook")); n != 1 {
			t.Errorf("%d requests", n)
		}
		r.retry(t, 409, id)
	})
}

func TestTestOperation(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		s := r.subscribe("/hook", []string{"job.failed"}, object{"filter": object{"queues": []string{"none"}}})
		test := func(t *testing.T, s sub) object {
			t.Helper()
			return r.send(t, 200, apptest.Call{Method: "POST", Path: s.at("/test")})
		}
		t.Run("success", func(t *testing.T) {
			trace.Covers(t, "OJS-API-11")
			r.sink.Script("/hook", apptest.Status(200).Body("text/plain", "OK"))
			got := test(t, s)
			if ms, ok := got["response_time_ms"].(float64); !ok || ms < 0 || ms != float64(int(ms)) {
				t.Errorf("response_time_ms %v", got["response_time_ms"])
			}
			delete(got, "response_time_ms")
			if !reflect.DeepEqual(got, object{"success": true, "status_code": 200.0, "response_body": "OK"}) {
				t.Errorf("%v", got)
			}
		})
		t.Run("the event", func(t *testing.T) {
			trace.Covers(t, "OJS-API-12")
			req := r.sink.Requests("/hook")[0]
			body := decoded(t, req)
			checkEnvelope(t, body)
			if body["type"] != "webhook.test" || req.Header.Get("X-OJS-Event-Type") != "webhook.test" || body["subject"] != s.id || !reflect.DeepEqual(body["data"], object{"ping": true}) {
				t.Errorf("%s", req.Body)
			}
			verify(t, req, s.secret, r.Clock.Now())
			if !deliveryID.MatchString(req.Header.Get("X-OJS-Delivery-ID")) || req.Header.Get("X-OJS-Subscription-ID") != s.id {
				t.Errorf("headers %v", req.Header)
			}
		})
		t.Run("failure is a result", func(t *testing.T) {
			trace.Covers(t, "OJS-API-13")
			before := scrape(t, r, "ojs_webhook_delivery")
			r.patch(s, object{"active": false})
			r.sink.Script("/hook", apptest.Status(500).Body("text/plain", strings.Repeat("é", 4000)), apptest.Hangup())
			got := test(t, s)
			if body := got["response_body"].(string); got["success"] != false || got["status_code"] != 500.0 || len(body) > 4096 || len(body) < 4000 || !strings.HasPrefix(body, "éé") {
				t.Errorf("500: %v", got)
			}
			got = test(t, s)
			if got["success"] != false || got["status_code"] != 0.0 || got["error"] == "" || got["error"] == nil {
				t.Errorf("hung up: %v", got)
			}
			got = test(t, r.subscribeURL(apptest.DeadURL(t, "/"), []string{"never"}))
			if got["success"] != false || got["status_code"] != 0.0 || got["error"] == nil {
				t.Errorf("closed port: %v", got)
			}
			sent := len(r.sink.Requests("/hook"))
			r.passDays(2)
			if n := len(r.sink.Requests("/hook")); n != sent {
				t.Errorf("%d requests more", n-sent)
			}
			if list := r.list("subscription_id=" + s.id); len(list) != 0 {
				t.Errorf("recorded as deliveries: %+v", list)
			}
			if after := scrape(t, r, "ojs_webhook_delivery"); !reflect.DeepEqual(after, before) {
				t.Errorf("counted: %v, before %v", after, before)
			}
			r.send(t, 404, apptest.Call{Method: "POST", Path: subscriptionsPath + "/sub_" + somewhere + "/test"})
		})
	})
}

func TestRotateAnswer(t *testing.T) {
	trace.Covers(t, "OJS-API-14")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"never"})
	got := r.send(t, 200, apptest.Call{Method: "POST", Path: s.at("/rotate-secret")})
	secret, _ := got["secret"].(string)
	until, err := time.Parse(time.RFC3339, got["previous_secret_expires_at"].(string))
	if got["id"] != s.id || !mintedSecret.MatchString(secret) || secret == s.secret || got["new_secret"] != secret || err != nil ||
		until.Sub(r.Clock.Now()).Round(time.Second) != 24*time.Hour {
		t.Errorf("rotated: %v", got)
	}
}

// TestSecretIsShownNowhereElse searches every readable response.
func TestSecretIsShownNowhereElse(t *testing.T) {
	trace.Covers(t, "OJS-API-3", "OJS-ROT-6")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*", "webhook.*"})
	ev := r.publish("job.done")
	r.settle()
	rotated := r.send(t, 200, apptest.Call{Method: "POST", Path: s.at("/rotate-secret")})["secret"].(string)
	r.Advance(2 * time.Second)
	del := r.delivery(ev, s).ID
	for _, c := range []apptest.Call{
		{Path: s.at("")}, {Path: subscriptionsPath}, {Method: "PATCH", Path: s.at(""), Body: `{"active":true}`}, {Method: "POST", Path: s.at("/test")},
		{Path: deliveriesPath}, {Path: deliveriesPath + "/" + del}, {Path: eventsPath}, {Path: "/ojs/manifest"}, {Path: "/v1/endpoints/" + s.id},
		{Path: "/v1/endpoints"}, {Path: "/v1/endpoints/" + s.id + "/secrets"}, {Path: "/metrics"},
	} {
		resp := r.Call(c)
		for _, secret := range []string{s.secret, rotated} {
			if strings.Contains(string(resp.Body), secret) {
				t.Errorf("%s %s shows it", c.Method, c.Path)
			}
		}
	}
	for _, req := range r.requests(s) {
		if strings.Contains(req.Head+string(req.Body), s.secret) || strings.Contains(req.Head+string(req.Body), rotated) {
			t.Errorf("a delivery shows it: %s", req.Body)
		}
	}
	if log := r.Log.String(); strings.Contains(log, s.secret) || strings.Contains(log, rotated) {
		t.Error("the log shows it")
	}
}

func TestDeliveryHistory(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		t.Run("list", func(t *testing.T) {
			trace.Covers(t, "OJS-API-15")
			s := r.subscribe("/list", []string{"list.*"})
			r.sink.Script("/list", reply(200, 404, 500)...)
			for _, kind := range []string{"list.a", "list.b", "list.c"} {
				r.publish(kind)
				r.settle()
				r.Advance(10 * time.Millisecond)
			}
			summary := func(query string) string {
				var parts []string
				for _, d := range r.list("subscription_id=" + s.id + query) {
					parts = append(parts, d.EventType+" "+d.Status)
				}
				return strings.Join(parts, ", ")
			}
			for query, want := range map[string]string{
				"":                   "list.c failed, list.b dead, list.a delivered",
				"&status=dead":       "list.b dead",
				"&status=delivered":  "list.a delivered",
				"&status=failed":     "list.c failed",
				"&status=pending":    "",
				"&status=cancelled":  "",
				"&event_type=list.a": "list.a delivered",
				"&limit=1":           "list.c failed",
			} {
				if got := summary(query); got != want {
					t.Errorf("%s: %q, want %q", query, got, want)
				}
			}
			next := r.send(t, 200, apptest.Call{Path: deliveriesPath + "?limit=1&subscription_id=" + s.id})["pagination"].(object)
			if next["has_more"] != true || summary("&limit=1&cursor="+next["next_cursor"].(string)) != "list.b dead" {
				t.Errorf("second page after %v", next)
			}
		})
		t.Run("detail", func(t *testing.T) {
			trace.Covers(t, "OJS-API-16")
			s := r.subscribe("/detail", []string{"job.detail"})
			r.sink.Script("/detail", apptest.Status(500).Body("text/plain", "broken"), apptest.Hangup(), apptest.Status(200))
			ev := r.publish("job.detail")
			r.settle()
			d := r.delivery(ev, s)
			if d.Status != "failed" || d.NextAttemptAt == nil || d.NextAttemptAt.Sub(r.Clock.Now()).Round(time.Second) != schedule[0] || d.CompletedAt != nil {
				t.Errorf("after the first: %+v", d)
			}
			r.pass(schedule[0])
			r.pass(schedule[1])
			d = r.delivery(ev, s)
			if !deliveryID.MatchString(d.ID) || d.SubscriptionID != s.id || d.EventID != ev.String() || d.EventType != "job.detail" || d.Status != "delivered" ||
				d.AttemptCount != 3 || d.NextAttemptAt != nil || d.CompletedAt == nil || !slices.Equal(d.codes(), []int{500, 0, 200}) {
				t.Errorf("%+v", d)
			}
			for i, a := range d.Attempts {
				if a.Number != i+1 || a.DurationMS < 0 || (a.Error == "") != (i == 2) || (a.ResponseBody == "broken") != (i == 0) {
					t.Errorf("attempt %d: %+v", i+1, a)
				}
			}
			if gap := d.Attempts[1].StartedAt.Sub(d.Attempts[0].StartedAt); gap != schedule[0] {
				t.Errorf("gap %v", gap)
			}
			r.send(t, 404, apptest.Call{Path: deliveriesPath + "/del_" + somewhere})
		})
		t.Run("retry by hand", func(t *testing.T) {
			trace.Covers(t, "OJS-API-17")
			s := r.subscribe("/again", []string{"job.again"})
			r.sink.Script("/again", reply(404, 200)...)
			ev := r.publish("job.again")
			r.settle()
			d := r.delivery(ev, s)
			if d.Status != "dead" {
				t.Fatalf("%+v", d)
			}
			r.Advance(time.Hour)
			if got := r.retry(t, 202, d.ID); got["id"] != d.ID {
				t.Errorf("retried: %v", got)
			}
			requests := r.requests(s)
			if len(requests) != 2 || requests[1].Header.Get("X-OJS-Delivery-ID") != d.ID || string(requests[1].Body) != string(requests[0].Body) {
				t.Fatalf("%d requests", len(requests))
			}
			verify(t, requests[1], s.secret, r.Clock.Now())
			if requests[0].Header.Get("X-OJS-Timestamp") == requests[1].Header.Get("X-OJS-Timestamp") {
				t.Error("the time is the old one")
			}
			if d = r.delivery(ev, s); d.Status != "delivered" || d.AttemptCount != 2 {
				t.Errorf("%+v", d)
			}
			r.retry(t, 409, d.ID)
			r.retry(t, 404, "del_"+somewhere)
			gate := make(chan struct{})
			r.sink.Script("/again", apptest.Status(200).Until(gate))
			ev = r.publish("job.again")
			r.sink.WaitOn("/again", 3)
			r.retry(t, 409, r.delivery(ev, s).ID)
			close(gate)
			if n := len(r.requests(s)); n != 3 {
				t.Errorf("%d requests", n)
			}
		})
	})
}

func TestAuthentication(t *testing.T) {
	trace.Covers(t, "OJS-API-18")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"})
	for _, authorization := range []string{"", "Bearer", "Bearer gdw_0000000000000000000000000000000000000000000", "Basic " + r.Key, r.Key} {
		for _, c := range []apptest.Call{
			{Path: subscriptionsPath}, {Path: subscriptionsPath, Body: `{}`}, {Path: s.at("")}, {Method: "PATCH", Path: s.at(""), Body: `{}`}, {Method: "DELETE", Path: s.at("")},
			{Method: "POST", Path: s.at("/test")}, {Method: "POST", Path: s.at("/rotate-secret")}, {Path: deliveriesPath}, {Path: deliveriesPath + "/del_" + somewhere},
			{Method: "POST", Path: deliveriesPath + "/del_" + somewhere + "/retry"}, {Path: eventsPath, Body: envelope("job.x")}, {Path: eventsPath}, {Path: eventsPath + "/batch", Body: `{}`},
		} {
			c.Header = map[string]string{"Authorization": authorization}
			got := r.send(t, 401, c)
			if got["error"].(object)["code"] != "unauthorized" {
				t.Errorf("%s %s: %v", c.Method, c.Path, got)
			}
		}
	}
	r.read(s) // it is still there
}

// TestPublishing tests the producer's side, which the document leaves open.
func TestPublishing(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-API-19")
		r := newRig(t, o)
		gate := make(chan struct{})
		r.sink.Script("/hook", apptest.Status(200).Until(gate))
		a, b := r.subscribe("/hook", []string{"job.*"}), r.subscribe("/other", []string{"job.*"})
		mine := envelope("job.done", object{"id": "mine-1"})
		first := r.send(t, 202, apptest.Call{Path: eventsPath, Body: mine}) // while the receiver hangs
		second := r.send(t, 202, apptest.Call{Path: eventsPath, Body: mine})
		if first["id"] != second["id"] || !strings.HasPrefix(fmt.Sprint(first["id"]), "evt_") {
			t.Errorf("answered %v and %v", first, second)
		}
		if _, err := r.App.Store().Event(t.Context(), r.Tenant, mustEvent(t, first["id"])); err != nil {
			t.Errorf("it is not stored: %v", err)
		}
		close(gate)
		for _, s := range []sub{a, b} {
			requests := r.requests(s)
			if len(requests) != 1 || decoded(t, requests[0])["id"] != "mine-1" {
				t.Errorf("%d requests", len(requests))
			}
		}
		r.send(t, 202, apptest.Call{Path: eventsPath, Body: envelope("job.done")}) // id, time and specversion are filled in
		checkEnvelope(t, decoded(t, r.requests(a)[1]))
	})
}

func mustEvent(t *testing.T, text any) godwit.EventID {
	t.Helper()
	id, err := godwit.ParseEventID(fmt.Sprint(text))
	if err != nil {
		t.Fatal(err)
	}
	return id
}
