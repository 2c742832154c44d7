package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// An export that is under way ends when the session of its client does, and is not taken for complete. It is larger than what sockets hold, so that the server is still
// writing when the session ends.
func TestExportEndsWithItsSession(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{
		Clock:     clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)),
		Configure: func(c *config.Config) { c.Sessions.FailuresPerMinute = 0 },
	})
	sink := apptest.NewSink(t)
	sink.ReplyFunc("/", func(*apptest.Request) apptest.Reply { return apptest.Status(422) })
	endpoint := srv.Endpoint(sink.URL("/"), apptest.Fields{"policy": apptest.Fields{"disable_after": 0}})
	const events = 40
	for i := range events {
		event := srv.Publish("order.paid", fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", 500_000)))
		srv.WaitDelivery(event, endpoint, godwit.DeliveryTerminal)
	}
	open := openPortal(t, srv, apptest.Fields{"capabilities": []string{"view_payloads"}}).stream("/v1/dead-letters/export")
	srv.Must(apptest.Call{Method: "DELETE", Path: "/v1/sessions?kind=portal&tenant=" + srv.Tenant.String()}, nil)
	if lines := open.untilEnd(srv); len(lines) >= events-1 || open.lines.Err() == nil {
		t.Errorf("the export goes on after the end of its session: %d lines, %v", len(lines), open.lines.Err())
	}
}
