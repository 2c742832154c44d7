package cli

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

func TestStats(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	u.has([]string{"stats", "--by", "endpoint"}, "no traffic")
	u.has([]string{"stats", "failures"}, "no failed attempts")
	u.has([]string{"stats", "waiting"}, "WAITING", "HEALTHY")
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(422))
	var endpoint struct{ ID string }
	srv.Must(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": sink.URL("/"), "uid": "hook"}}, &endpoint)
	srv.Must(apptest.Call{Path: "/v1/events?type=order.paid", Body: `{"n":1}`}, nil)
	for !strings.Contains(u.has([]string{"stats", "--json", "--since", "10m"}, `"at":`), `"dead":1`) { // the result is committed after the answer
	}
	u.has([]string{"stats", "--since", "1h"}, "AT", "total", "FAILED")
	u.has([]string{"stats", "--by", "endpoint", "--endpoint", endpoint.ID}, "ENDPOINT", endpoint.ID)
	u.has([]string{"stats", "--by", "tenant", "--json"}, `"tenant":"`+srv.Tenant.String())
	u.has([]string{"stats", "failures"}, "client-error", "422", "WHAT TO DO")
	u.has([]string{"stats", "failures", "--json"}, `"cause":"client-error"`)
	u.has([]string{"stats", "waiting", "--json"}, `"waiting":0`)
	u.refused([]string{"stats", "--step", "second"}, "show stats", "step")
	u.refused([]string{"stats", "--since", "never"}, "--since")
}
