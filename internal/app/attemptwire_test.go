package app_test

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// Attempts show the request and the response as they were on the wire, without secrets, and where the time went.
func TestAttemptsShowTheWire(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		sink := apptest.NewSink(t)
		sink.Script("/", apptest.Status(422, "X-Request-Id", "r-1", "Set-Cookie", "sid=topsecret").Body("text/plain", strings.Repeat("no ", 3000)), apptest.Status(204))
		var endpoint struct{ ID string }
		srv.Must(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{
			"url": sink.URL("/"), "headers": apptest.Fields{"X-Tenant": "topsecret-header"}, "auth": apptest.Fields{"kind": "bearer", "token": "topsecret-token"},
		}}, &endpoint)
		type attempt struct {
			Status int
			Timing *struct {
				First float64 `json:"first_byte_ms"`
				Total float64 `json:"total_ms"`
			}
			Request *struct {
				URL     string
				Headers []struct{ Name, Value string }
			}
			Response *struct {
				Status    int
				Headers   []struct{ Name, Value string }
				Body      string
				Truncated bool
			}
			Trace map[string]any
		}
		for i, want := range []string{"terminal", "accepted"} {
			srv.Must(apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"n":1}`}, nil)
			var list struct{ Items []struct{ ID, Status string } }
			for len(list.Items) <= i || list.Items[0].Status != want { // the result is committed after the answer
				srv.Must(apptest.Call{Path: "/v1/deliveries"}, &list)
			}
			r := srv.Call(apptest.Call{Path: "/v1/deliveries/" + list.Items[0].ID})
			if strings.Contains(string(r.Body), "topsecret") {
				t.Errorf("a secret is shown: %s", r.Body)
			}
			var detail struct{ Attempts []attempt }
			r.JSON(t, &detail)
			if len(detail.Attempts) != 1 {
				t.Fatalf("attempts: %s", r.Body)
			}
			a := detail.Attempts[0]
			if a.Timing == nil || a.Timing.First <= 0 || a.Timing.Total < a.Timing.First || a.Request == nil || a.Response == nil || a.Response.Status != a.Status || a.Trace["wire"] != nil {
				t.Fatalf("attempt: %s", r.Body)
			}
			sent := map[string]string{}
			for _, f := range a.Request.Headers {
				sent[f.Name] = f.Value
			}
			if !strings.HasPrefix(sent["Authorization"], "Bearer •") || !strings.HasPrefix(sent["X-Tenant"], "•") || sent["Content-Type"] == "" || sent["Idempotency-Key"] == "" || sent["Signature"] == "" || a.Request.URL != sink.URL("/") {
				t.Errorf("sent: %v", sent)
			}
			if i == 0 && (!a.Response.Truncated || len(a.Response.Headers) == 0 || !strings.HasPrefix(a.Response.Body, "no no")) {
				t.Errorf("response: %+v", a.Response)
			}
		}
	})
}
