package builtincommand_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// The command has the same rules as the native API: it needs a filter or "all", and the answer that asks for confirmation
// lists what would be removed.
func TestPurgeCommandSelectsExplicitlyAndTellsWhatWouldGo(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		sink := apptest.NewSink(t)
		sink.Script("/", apptest.Status(400), apptest.Status(400))
		ep := srv.Endpoint(sink.URL("/"))
		for range 2 {
			srv.WaitDelivery(srv.Publish("order.paid", `{}`), ep, godwit.DeliveryTerminal)
		}
		c, err := client.New(srv.URL, srv.Key)
		if err != nil {
			t.Fatal(err)
		}
		submit := func(action, args string) (*client.CommandAnswer, error) {
			return c.Commands().Submit(t.Context(), client.Command{Entity: "dead_letters", Action: action, Args: json.RawMessage(args)})
		}
		for _, action := range []string{"purge", "replay"} {
			for args, field := range map[string]string{
				`{}`: "/args/all", `{"all":false}`: "/args/all", `{"all":true,"type":"order.paid"}`: "/args/all", `{"limit":5}`: "/args/all",
				`{"endpoint":""}`: "/args/endpoint", `{"endpoint":null}`: "/args/endpoint", `{"type":""}`: "/args/type", `{"reason":""}`: "/args/reason",
				`{"status":""}`: "/args/status", `{"since":""}`: "/args/since", `{"until":null}`: "/args/until",
			} {
				_, err := submit(action, args)
				if err == nil || !strings.Contains(err.Error(), field) {
					t.Errorf("%s %s: %v", action, args, err)
				}
			}
		}
		a, err := submit("purge", `{"all":true}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Affects; !a.Awaits() || got == nil || got.DeadLetters != 2 || got.More || len(got.Endpoints) != 1 || got.Endpoints[0].ID != ep.ID.String() || got.Endpoints[0].DeadLetters != 2 {
			t.Errorf("answer %s", a.Raw)
		}
		limited, err := submit("purge", `{"type":"order.paid","limit":1}`)
		if err != nil || limited.Affects == nil || limited.Affects.DeadLetters != 1 || !limited.Affects.More {
			t.Errorf("with a limit: %s, %v", limited.Raw, err)
		}
		// The endpoint does not exist; the execution reports it.
		if gone, err := submit("purge", `{"endpoint":"WEB-X2M8KD-Z"}`); err != nil || gone.Affects != nil {
			t.Errorf("of no endpoint: %+v, %v", gone, err)
		}
		// Nothing was removed yet.
		var list struct{ Items []any }
		if r := srv.Must(apptest.Call{Path: "/v1/dead-letters"}, &list); r.Status != http.StatusOK || len(list.Items) != 2 {
			t.Errorf("%d dead letters", len(list.Items))
		}
	})
}
