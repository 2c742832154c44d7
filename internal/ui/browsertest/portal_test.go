package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/ui/browsertest"
)

var allCapabilities = []string{"view_endpoints", "manage_endpoints", "secrets", "send_tests", "view_payloads", "replay", "event_types"}

// portalLink makes a link for the server's own tenant.
func portalLink(s *apptest.Server, capabilities []string, fields ...apptest.Fields) (address, id string) {
	body := apptest.Fields{"tenant": s.Tenant.String(), "capabilities": capabilities}
	for _, f := range fields {
		for name, value := range f {
			body[name] = value
		}
	}
	var made struct{ ID, URL string }
	s.Must(apptest.Call{Path: "/v1/portal-links", Body: body}, &made)
	return made.URL, made.ID
}

// base returns the path of the portal below which its pages are.
func base(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(u.Path, "/")
}

func catalogue(s *apptest.Server) {
	s.Must(apptest.Call{Method: "PUT", Path: "/v1/event-types/order.paid", Body: apptest.Fields{
		"description": "An order was paid. " + hostile, "example": map[string]any{"order": 4711, "note": hostile},
		"schema": map[string]any{"type": "object", "properties": map[string]any{"order": map[string]any{"type": "integer"}}},
	}}, nil)
	s.Must(apptest.Call{Method: "PUT", Path: "/v1/event-types/order.old", Body: apptest.Fields{"description": "No longer sent", "deprecated": true}}, nil)
}

// Each page of the portal, looked at in both themes and at both widths, with script in everything that others write.
func TestPortalPages(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s := newScene(t, o)
		catalogue(s.Server)
		link, _ := portalLink(s.Server, allCapabilities)
		page := browsertest.Start(t).Open(t, link)
		if address := page.Address(); strings.Contains(address, "#") || !strings.HasSuffix(address, "/endpoints") {
			t.Errorf("the portal is at %s", address)
		}
		at := base(t, link)
		for _, p := range []struct{ name, path string }{
			{"endpoints", "/endpoints"},
			{"endpoint", "/endpoints/" + s.broken.ID.String()},
			{"endpoint-new", "/endpoints/new"},
			{"endpoint-edit", "/endpoints/" + s.good.ID.String() + "/edit"},
			{"verify-go", "/endpoints/" + s.good.ID.String() + "/verify"},
			{"verify-shell", "/endpoints/" + s.good.ID.String() + "/verify?language=shell"},
			{"deliveries", "/deliveries"},
			{"deliveries-none", "/deliveries?type=no.such"},
			{"delivery", "/deliveries/" + s.retried.String()},
			{"delivery-dead", "/deliveries/" + s.dead.String()},
			{"events", "/events"},
			{"event", "/events/" + s.paid.String()},
			{"event-types", "/event-types"},
			{"event-type", "/event-types/order.paid"},
			{"activity", "/activity?range=1h"},
			{"live", "/live"},
			{"recover", "/recover"},
			{"nowhere", "/nowhere"},
		} {
			page.Go(at + p.path)
			if !o.Postgres { // the look is the same
				page.Inspect("portal-" + p.name)
			}
			if title := browsertest.Value[string](page, `document.title`); strings.Contains(title, "owned") {
				t.Errorf("%s runs stored script", p.path)
			}
		}
	})
}

// What a customer does, one after the other.
func TestPortalFlows(t *testing.T) {
	s := newScene(t, apptest.Options{})
	catalogue(s.Server)
	link, _ := portalLink(s.Server, allCapabilities, apptest.Fields{"start_page": "event-types", "return_url": "https://app.example.com/settings"})
	page := browsertest.Start(t).Open(t, link)
	page.WaitText("An order was paid.")
	page.WaitText("Back to the application")

	page.Click("Endpoints")
	page.Click("Add an endpoint")
	page.Fill("URL", "not a url")
	page.WaitText("is not a URL")
	page.Fill("URL", s.sink.URL("/mine"))
	page.Fill("Description", "Mine")
	page.Click("order.paid")
	page.Click("Add the endpoint")
	page.WaitText("Copy the signing secret now.")
	page.Inspect("portal-endpoint-added")
	page.Click("Go to the endpoint")
	page.WaitText("Mine")
	page.Click("Send a test")
	page.WaitText("A test event is on its way")
	s.sink.WaitOn("/mine", 1)
	page.Click("Probe")
	page.WaitText("The endpoint answered")
	page.Settle()

	page.Click("Pause")
	page.WaitText("The endpoint is paused")
	page.Click("Resume")
	page.WaitText("The endpoint gets events again")
	page.Click("Edit")
	page.Settle()
	page.Fill("Description", "Changed")
	page.Click("Save")
	page.WaitText("The endpoint is changed")
	page.WaitText("Changed")

	page.Click("Rotate")
	page.WaitText("goes on signing beside it")
	page.Click("Rotate") // within the dialog
	page.WaitText("Copy the signing secret now.")
	page.Inspect("portal-rotated")
	page.Click("I have copied it")
	page.Settle()

	page.Click("Delete")
	page.Click("Delete the endpoint")
	page.WaitText("The endpoint is deleted")

	// What failed: one delivery, then all since yesterday.
	s.sink.ReplyFunc("/refuses", always(apptest.Status(204)))
	page.Go(base(t, link) + "/deliveries/" + s.dead.String())
	page.Click("Send again")
	page.WaitText("It is sent again now")
	s.WaitDelivery(s.paid, s.refuses, godwit.DeliveryAccepted)
	s.sink.ReplyFunc("/refuses", always(apptest.Status(400)))
	again := s.Publish("order.paid", `{"order":4712}`)
	s.WaitDelivery(again, s.refuses, godwit.DeliveryTerminal)
	s.sink.ReplyFunc("/refuses", always(apptest.Status(204)))
	page.Go(base(t, link) + "/recover")
	page.Click("the last hour")
	page.Click("Send again what failed")
	page.WaitText("on the way again")
	s.WaitDelivery(again, s.refuses, godwit.DeliveryAccepted)

	page.Go(base(t, link) + "/live")
	page.WaitText("connected")
	s.Publish("order.live", `{}`)
	page.WaitText("order.live")
}

// Each capability alone shows its own pages and asks the API for nothing that it refuses.
func TestPortalShowsWhatTheLinkAllows(t *testing.T) {
	s := newScene(t, apptest.Options{})
	catalogue(s.Server)
	browser := browsertest.Start(t)
	pages := map[string][]string{
		"view_endpoints": {"Endpoints", "Deliveries", "Activity", "Live"},
		// One page alone needs no navigation.
		"manage_endpoints": {}, "view_payloads": {}, "replay": {}, "event_types": {}, "secrets": {}, "send_tests": {},
	}
	first := map[string]string{
		"view_endpoints": "Endpoints", "manage_endpoints": "Add an endpoint", "view_payloads": "Events", "replay": "Recover", "event_types": "Event types",
		"secrets": "There is nothing to see here", "send_tests": "There is nothing to see here",
	}
	for _, capability := range allCapabilities {
		t.Run(capability, func(t *testing.T) {
			link, _ := portalLink(s.Server, []string{capability})
			page := browser.Open(t, link)
			page.WaitText(first[capability])
			page.Settle()
			if got := browsertest.Value[[]string](page, `[...document.querySelectorAll("nav a")].map((a) => a.innerText)`); !slices.Equal(got, pages[capability]) {
				t.Errorf("navigation %q", got)
			}
			for _, path := range []string{"/endpoints", "/endpoints/new", "/deliveries", "/activity", "/events", "/event-types", "/recover", "/live"} {
				page.Go(base(t, link) + path)
			}
			if capability == "view_endpoints" {
				page.Go(base(t, link) + "/endpoints/" + s.good.ID.String())
				text := page.Text()
				for _, button := range []string{"Edit", "Pause", "Delete", "Rotate", "Send a test", "Probe", "Recover"} {
					if strings.Contains(text, button+"\n") {
						t.Errorf("there is a button %s", button)
					}
				}
				page.Go(base(t, link) + "/deliveries/" + s.dead.String())
				if text := page.Text(); strings.Contains(text, "Send again") || strings.Contains(text, "Payload") {
					t.Errorf("the delivery shows more than the link allows: %s", text)
				}
				page.Go(base(t, link) + "/endpoints/" + s.good.ID.String() + "/verify")
				page.WaitText("WEBHOOK_KEY_ID")
			}
		})
	}
}

// A link opens once, ids of another tenant are not found, and an ended session ends the page.
func TestPortalRefuses(t *testing.T) {
	s := newScene(t, apptest.Options{})
	browser := browsertest.Start(t)
	link, _ := portalLink(s.Server, allCapabilities)
	page := browser.Open(t, link)
	page.WaitText("Endpoints")

	second := browser.Open(t, plain(link))
	second.Expect(401, "/v1/sessions")
	second.Load(link)
	second.WaitText("This page needs a link")
	if text := second.Text(); strings.Contains(text, "billing") {
		t.Errorf("a used link shows %s", text)
	}

	var other struct{ ID string }
	s.Must(apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"name": "Other"}}, &other)
	var foreign struct{ ID string }
	s.Must(apptest.Call{Path: "/v1/endpoints", Header: map[string]string{"Godwit-Tenant": other.ID}, Body: apptest.Fields{"url": s.sink.URL("/foreign-secret-address")}}, &foreign)
	page.Expect(404, foreign.ID)
	page.Go(base(t, link) + "/endpoints/" + foreign.ID)
	page.WaitText("It may have been deleted")
	page.Expect(404, "/v1/")
	page.Expect(403, "/v1/")
	page.Load(s.URL + base(t, link) + "/endpoints?tenant=" + other.ID)
	if text := page.Text(); strings.Contains(text, "foreign-secret-address") {
		t.Errorf("the page shows another tenant's endpoints: %s", text)
	}

	page.Expect(401, "/v1/")
	s.Must(apptest.Call{Method: "DELETE", Path: "/v1/sessions?kind=portal&tenant=" + s.Tenant.String()}, nil)
	page.Go(base(t, link) + "/deliveries")
	page.WaitText("Your session has ended")
}

// plain is the link without its code.
func plain(link string) string {
	address, _, _ := strings.Cut(link, "#")
	return address
}

// host is a page of another origin that shows the portal, and has a new link when it is asked for one.
func host(t *testing.T, s *apptest.Server, link func() string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html>
<html lang="en">
  <title>My application</title>
  <link rel="icon" href="data:,">
  <h1>My application</h1>
  <script>
    window.told = [];
    addEventListener("message", (event) => told.push({ ...event.data, from: event.origin }));
  </script>
  <script type="module" src="%s/portal/embed.js"></script>
  <godwit-portal></godwit-portal>
  <script type="module">
    window.asked = 0;
    document.querySelector("godwit-portal").refreshLink = async () => {
      asked++;
      return (await fetch("/my/portal-link", { method: "POST" })).text();
    };
  </script>
</html>`, s.URL)
	})
	mux.HandleFunc("POST /my/portal-link", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, link()) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// asLocalhost is the same server under another host name, and so another site.
func asLocalhost(server *httptest.Server) string {
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

func TestPortalInAPageOfAnotherOrigin(t *testing.T) {
	s := newScene(t, apptest.Options{})
	app := host(t, s.Server, func() string { link, _ := portalLink(s.Server, allCapabilities); return link })
	origin := asLocalhost(app)
	s.Must(apptest.Call{Method: "PATCH", Path: "/v1/environments/default", Body: apptest.Fields{"allowed_origins": []string{origin}}}, nil)
	page := browsertest.Start(t).Open(t, origin+"/", s.URL)
	page.Wait(`told.some((m) => m.type === "ready")`)
	page.Wait(`told.some((m) => m.type === "height")`)
	page.Wait(`document.querySelector("godwit-portal").shadowRoot.querySelector("iframe").getBoundingClientRect().height === told.findLast((m) => m.type === "height").height`)
	frame := page.Frame(t, s.URL+"/portal/")
	frame.WaitText("Endpoints")
	if text := frame.Text(); !strings.Contains(text, "/good") {
		t.Errorf("the frame shows %s", text)
	}
	before := browsertest.Value[float64](page, `told.findLast((m) => m.type === "height").height`)
	frame.Click("Deliveries")
	frame.WaitText("order.shipped")
	page.Wait(fmt.Sprintf(`told.findLast((m) => m.type === "height").height > %f`, before))
	if cookies := browsertest.Value[string](frame, `document.cookie`); cookies != "" {
		t.Errorf("script can read the cookie %s", cookies)
	}
	page.Picture("portal-embedded")

	// The session ends: the element asks for another link, and the portal goes on.
	frame.Expect(401, "/v1/")
	s.Must(apptest.Call{Method: "DELETE", Path: "/v1/sessions?kind=portal&tenant=" + s.Tenant.String()}, nil)
	frame.Do(`[...document.querySelectorAll("nav a")].find((a) => a.innerText === "Endpoints").click()`)
	page.Wait(`asked === 2 && told.filter((m) => m.type === "ready").length === 2`)
	page.Wait(`told.every((m) => m.from === ` + fmt.Sprintf("%q", s.URL) + `)`)
	page.Frame(t, s.URL+"/portal/").WaitText("Endpoints")

	// A page whose origin the environment does not list gets an empty frame.
	s.Must(apptest.Call{Method: "PATCH", Path: "/v1/environments/default", Body: apptest.Fields{"allowed_origins": []string{"https://app.example.com"}}}, nil)
	stranger := browsertest.Start(t).Open(t, app.URL+"/", s.URL)
	stranger.AwaitFault("frame-ancestors")
	stranger.AwaitFault("ERR_BLOCKED_BY_RESPONSE")
	if told := browsertest.Value[int](stranger, `told.length`); told != 0 {
		t.Errorf("the portal in a foreign page said %d things", told)
	}
}

// The look of the environment reaches the page, and stays readable if its colours are not.
func TestPortalTheme(t *testing.T) {
	s := newScene(t, apptest.Options{})
	const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	s.Must(apptest.Call{Method: "PATCH", Path: "/v1/environments/default", Body: apptest.Fields{"theme": map[string]any{
		"light": map[string]any{"accent": "#ffe066", "background": "#fff8e1", "muted": "#c8c8c8", "text": "#eeeeee"},
		"dark":  map[string]any{"accent": "#400040", "surface": "#101820", "background": "#ffffff"},
		"font":  "Georgia, serif", "radius": 12, "logo": pixel, "favicon": pixel,
		"words": map[string]any{"title": "Acme hooks", "endpoints": "Targets", "deliveries": "Sendings", "event_types": "Kinds", "help_url": "https://help.example.com/"},
	}}}, nil)
	link, _ := portalLink(s.Server, allCapabilities, apptest.Fields{"theme": "dark"})
	browser := browsertest.Start(t)
	page := browser.Open(t, link)
	page.WaitText("Targets")
	for expression, want := range map[string]string{
		`document.documentElement.dataset.theme`:     "dark",
		`getComputedStyle(document.body).fontFamily`: "Georgia, serif",
		`document.title`: "Targets · Acme hooks",
		`document.querySelector("link[rel=icon]").href`:                      pixel,
		`document.querySelector("header img").src`:                           pixel,
		`document.documentElement.style.getPropertyValue("--radius")`:        "12px",
		`[...document.querySelectorAll("nav a")].map((a) => a.innerText)[1]`: "Sendings",
	} {
		if got := browsertest.Value[string](page, expression); got != want {
			t.Errorf("%s is %q", expression, got)
		}
	}
	page.Inspect("portal-theme-dark")

	link, _ = portalLink(s.Server, allCapabilities, apptest.Fields{"theme": "light", "hide_navigation": true, "start_page": "deliveries"})
	bare := browser.Open(t, link)
	bare.WaitText("order.shipped")
	if browsertest.Value[bool](bare, `document.querySelector("nav") !== null`) {
		t.Error("the navigation is not hidden")
	}
	bare.Inspect("portal-theme-light")
}
