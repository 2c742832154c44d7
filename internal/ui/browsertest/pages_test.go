package browsertest_test

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/ui/browsertest"
)

// Each page of the dashboard, looked at in both themes and at both widths.
func TestDashboardPages(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s := newScene(t, o)
		page := browsertest.Start(t).Open(t, s.URL+"/ui/")
		page.Expect(401, "/v1/sessions/current")
		if !o.Postgres {
			page.Inspect("sign-in")
		}
		page.SignIn(s.Key)
		for _, at := range []struct{ name, path string }{
			{"overview", "/ui/"},
			{"events", "/ui/events"},
			{"events-none", "/ui/events?type=no.such"},
			{"events-found", "/ui/events?text=4711"},
			{"event", "/ui/events/" + s.paid.String()},
			{"deliveries", "/ui/deliveries"},
			{"delivery", "/ui/deliveries/" + s.retried.String()},
			{"delivery-dead", "/ui/deliveries/" + s.dead.String()},
			{"endpoints", "/ui/endpoints"},
			{"endpoint", "/ui/endpoints/" + s.broken.ID.String()},
			{"endpoint-new", "/ui/endpoints/new"},
			{"endpoint-edit", "/ui/endpoints/" + s.good.ID.String() + "/edit"},
			{"dead-letters", "/ui/dead-letters"},
			{"live", "/ui/live"},
		} {
			page.Go(at.path)
			if !o.Postgres { // the look is the same
				page.Inspect(at.name)
			}
		}
	})
}
