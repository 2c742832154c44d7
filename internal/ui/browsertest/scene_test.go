package browsertest_test

import (
	"fmt"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// hostile is text that becomes markup or script if a page is careless.
const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

// A scene is a server on which something of everything happened.
type scene struct {
	*apptest.Server
	sink                  *apptest.Sink
	good, broken, refuses apptest.Endpoint
	paid                  godwit.EventID
	retried, dead         godwit.DeliveryID
}

func newScene(t *testing.T, o apptest.Options) *scene {
	t.Helper()
	s := &scene{Server: apptest.Start(t, o), sink: apptest.NewSink(t)}
	s.sink.ReplyFunc("/broken", always(apptest.Status(503).Body("text/html", hostile)))
	s.sink.ReplyFunc("/refuses", always(apptest.Status(400).Body("application/problem+json", `{"title":"`+`Unknown order <b>4711</b>`+`","detail":"`+"<script>document.title='owned'</script>"+`"}`)))
	s.good = s.Endpoint(s.sink.URL("/good"), apptest.Fields{"uid": "billing", "description": "Billing " + hostile})
	s.broken = s.Endpoint(s.sink.URL("/broken"), apptest.Fields{"uid": "warehouse", "patterns": []string{"order.*"}})
	s.refuses = s.Endpoint(s.sink.URL("/refuses"), apptest.Fields{"uid": "partner", "patterns": []string{"order.paid"}})
	s.paid = s.Post(apptest.Call{Path: "/v1/events?type=order.paid&attr.region=eu", Body: fmt.Sprintf(`{"order":4711,"note":%q,"lines":[{"sku":"A-1","count":2},{"sku":"B-7","count":1}]}`, hostile)})
	for i := range 6 {
		s.Publish("order.shipped", fmt.Sprintf(`{"order":%d}`, 4711+i))
		s.Publish("user.joined", fmt.Sprintf(`{"user":%d}`, i))
	}
	s.WaitDelivery(s.paid, s.good, godwit.DeliveryAccepted)
	s.WaitAttempts(s.paid, s.broken, 1)
	s.retried = s.Delivery(s.paid, s.broken).ID
	s.dead = s.WaitDelivery(s.paid, s.refuses, godwit.DeliveryTerminal).ID
	return s
}

func always(r apptest.Reply) func(*apptest.Request) apptest.Reply {
	return func(*apptest.Request) apptest.Reply { return r }
}
