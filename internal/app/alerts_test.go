package app_test

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/alert/smtptest"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A dead delivery of an endpoint whose policy alerts reaches the tenant's address by mail, and the log.
func TestPeopleAreToldOfDeadLetters(t *testing.T) {
	mail := smtptest.Start(t, &smtptest.Server{})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(400))
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) {
		c.SMTP = config.SMTP{URL: "smtp://me:open-sesame@" + mail.Address(), From: "godwit@example.com", PerMinute: 5}
	}})
	srv.Must(apptest.Call{Method: "PATCH", Path: "/v1/tenants/" + srv.Tenant.String(), Body: `{"alert_emails":["ops@example.com"]}`}, nil)
	ep := srv.Endpoint(sink.URL("/"), apptest.Fields{"description": "Orders", "policy": map[string]any{"alert": true}})
	ev := srv.Publish("order.paid", `{"secret":"of the payload"}`)
	srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
	got := <-mail.Mails
	if len(got.To) != 1 || got.To[0] != "ops@example.com" || !strings.Contains(got.Text, ev.String()) || !strings.Contains(got.Text, "Orders") ||
		strings.Contains(got.Text, "payload") {
		t.Errorf("mail %+v", got)
	}
	if err := srv.Stop(); err != nil {
		t.Error(err)
	}
	if !srv.Log.Has("msg=alert", "kind=delivery-dead", "endpoint="+ep.ID.String()) {
		t.Errorf("no line in the log:\n%s", srv.Log)
	}
	if srv.Log.Has("sesame") {
		t.Error("the password is in the log")
	}
}

// Mail that cannot be sent delays neither delivery nor the stop.
func TestMailServerThatIsAway(t *testing.T) {
	away := smtptest.Start(t, &smtptest.Server{})
	away.Refuse(func(string) string { return "421 not now" })
	sink := apptest.NewSink(t)
	sink.Script("/bad", apptest.Status(400))
	srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) {
		c.SMTP = config.SMTP{URL: "smtp://" + away.Address(), From: "godwit@example.com", PerMinute: 5}
	}})
	srv.Must(apptest.Call{Method: "PATCH", Path: "/v1/tenants/" + srv.Tenant.String(), Body: `{"alert_emails":["ops@example.com"]}`}, nil)
	bad := srv.Endpoint(sink.URL("/bad"), apptest.Fields{"patterns": []string{"a.bad"}, "policy": map[string]any{"alert": true}})
	good := srv.Endpoint(sink.URL("/good"), apptest.Fields{"patterns": []string{"a.good"}})
	for range 50 {
		srv.WaitDelivery(srv.Publish("a.bad", `{}`), bad, godwit.DeliveryTerminal)
		if srv.EndpointCall(bad, "POST", "/resume", nil); t.Failed() {
			return
		}
	}
	srv.WaitDelivery(srv.Publish("a.good", `{}`), good, godwit.DeliveryAccepted)
	if err := srv.Stop(); err != nil {
		t.Error(err)
	}
	if len(away.Mails) > 0 {
		t.Error("mail was taken")
	}
}

func TestMetaEventsByName(t *testing.T) {
	for _, mode := range []string{config.MetaWanted, config.MetaExplicit} {
		t.Run(mode, func(t *testing.T) {
			sink := apptest.NewSink(t)
			srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { c.MetaEvents = mode }})
			named := srv.Endpoint(sink.URL("/named"), apptest.Fields{"patterns": []string{"webhook.*"}})
			srv.Endpoint(sink.URL("/all"), apptest.Fields{"patterns": []string{"*"}})
			srv.Endpoint(sink.URL("/job"), apptest.Fields{"profile": "ojs", "patterns": []string{"job.completed"}})
			sink.WaitOn("/named", 1) // the event that the subscription was created
			srv.Publish("job.completed", `{}`)
			sink.WaitOn("/named", 2) // the event that it was delivered
			want := 1
			if mode == config.MetaWanted {
				want = 3
			}
			sink.WaitOn("/all", want)
			if n := len(sink.Requests("/all")); n != want {
				t.Errorf("%d events reached the endpoint of all", n)
			}
			_ = named
		})
	}
}
