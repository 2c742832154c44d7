package browsertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/ui/browsertest"
)

// What operators do, on one server and in one tab.
func TestDashboardFlows(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s := newScene(t, o)
		page := browsertest.Start(t).Open(t, s.URL+"/ui/")
		page.Expect(401, "/v1/sessions")
		flows := []struct {
			name string
			run  func(*testing.T, *scene, *browsertest.Page)
		}{
			{"sign in", signsIn},
			{"keyboard", usesTheKeyboard},
			{"filters are in the address", filters},
			{"find by payload", findsByPayload},
			{"explain", explains},
			{"replay an event", replaysAnEvent},
			{"bulk retry", retriesMany},
			{"dead letters", replaysDeadLetters},
			{"purge", purges},
			{"endpoint", makesAnEndpoint},
			{"live", watches},
			{"hostile text", showsHostileText},
			{"sign out", signsOut},
		}
		for _, f := range flows {
			t.Run(f.name, func(t *testing.T) { f.run(t, s, page.For(t)) })
			if t.Failed() {
				return // later flows build on the page as this one left it
			}
		}
	})
}

func signsIn(t *testing.T, s *scene, page *browsertest.Page) {
	page.Fill("API key", "gdw_wrong")
	page.Click("Sign in")
	page.Wait(`document.querySelector("[role=alert]") !== null`)
	page.SignIn(s.Key)
	page.WaitText("Overview")
	if cookie := browsertest.Value[string](page, `document.cookie`); cookie != "" {
		t.Errorf("script can read a cookie: %s", cookie)
	}
	if stored := browsertest.Value[string](page, `JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage})`); strings.Contains(stored, s.Key) {
		t.Error("the page keeps the key")
	}
	// A page that is loaded anew is still signed in.
	page.Load(s.URL + "/ui/events")
	page.WaitText("order.paid")
}

func usesTheKeyboard(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/events")
	page.Type("j")
	page.Wait(`new URLSearchParams(location.search).has("row")`)
	first := page.Address()
	page.Type("j")
	page.Wait(`location.href !== ` + fmt.Sprintf("%q", first))
	page.Type("k")
	page.Wait(`location.href === ` + fmt.Sprintf("%q", first))
	page.Wait(`document.querySelectorAll("tr[aria-current=true]").length === 1`)
	page.Type("\r")
	page.Wait(`location.pathname.startsWith("/ui/events/evt_")`)
	page.Settle()
	page.Do(`history.back()`)
	page.Wait(`location.pathname === "/ui/events"`)
	page.Settle()
	page.Type("/")
	page.Wait(`document.activeElement?.hasAttribute("data-search")`)
	page.Type("\x1b")
	page.Wait(`!document.activeElement?.hasAttribute("data-search")`)
	page.Type("?")
	page.Wait(`document.querySelector("dialog[open]") !== null`)
	page.Type("\x1b")
	page.Wait(`document.querySelector("dialog[open]") === null`)
}

func filters(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/deliveries")
	page.Fill("Status", "terminal")
	page.Wait(`new URLSearchParams(location.search).get("status") === "terminal"`)
	page.Settle()
	page.Wait(`[...document.querySelectorAll("tbody tr")].length === 1`)
	// Another person opens the same address.
	page.Load(page.Address())
	page.Wait(`[...document.querySelectorAll("tbody tr")].length === 1`)
	page.Do(`history.back()`)
	page.Wait(`!new URLSearchParams(location.search).has("status")`)
	page.Wait(`[...document.querySelectorAll("tbody tr")].length > 1`)
	page.Settle()
}

func findsByPayload(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/events?text=%22order%22%3A4716")
	page.WaitText("there are no others")
	page.Wait(`[...document.querySelectorAll("tbody tr")].length === 1`)
	page.WaitText("4716")
}

func explains(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/events/" + s.paid.String())
	page.WaitText("Why each endpoint got it, or not")
	page.Wait(`document.querySelector("table[aria-label^='Endpoints, and why']")?.querySelectorAll("tbody tr").length === 3`)
}

func replaysAnEvent(t *testing.T, s *scene, page *browsertest.Page) {
	before := len(s.sink.Requests("/good"))
	page.Go("/ui/events/" + s.paid.String())
	page.Click("Replay to all")
	page.Click("Replay")
	page.Wait(`document.querySelector("dialog[open]") === null`)
	s.sink.WaitOn("/good", before+1)
	page.Settle()
}

func retriesMany(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/deliveries?status=pending")
	page.Click("Retry all that fit…")
	page.Wait(`/\d+ deliveries/.test(document.querySelector("dialog[open]")?.innerText)`)
	page.Click("Retry them")
	page.WaitText("due now") // when they go out is the circuit's affair
	page.Wait(`document.querySelector("dialog[open]") === null`)
	page.Settle()
}

func replaysDeadLetters(t *testing.T, s *scene, page *browsertest.Page) {
	before := len(s.sink.Requests("/refuses"))
	page.Go("/ui/dead-letters")
	page.Click("Select all rows shown")
	page.Click("Replay 1…")
	page.Click("Replay")
	s.sink.WaitOn("/refuses", before+1)
	page.Settle()
	s.WaitDelivery(s.paid, s.refuses, godwit.DeliveryTerminal)
}

func purges(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/dead-letters")
	page.Click("Purge…")
	page.WaitText("would be removed")
	page.Fill("Type purge to confirm", "purge")
	page.Click("Purge")
	page.WaitText("No dead letters")
	page.Settle()
}

func makesAnEndpoint(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/endpoints/new")
	page.Fill("URL", "ftp://example.com")
	page.WaitText("must begin with https://")
	page.Fill("URL", s.sink.URL("/made"))
	page.Fill("Event types", "order.paid, order.paid")
	page.WaitText("is there twice")
	page.Fill("Event types", "invoice.*")
	page.Fill("Own id (uid)", "accounting")
	page.Click("Create endpoint")
	page.WaitText("Copy it now.")
	page.Click("Go to the endpoint")
	page.WaitText("Policy in force")
	page.Settle()
	page.Click("Probe")
	page.Wait(`document.querySelector("[aria-label='Answer to the probe']")?.innerText.includes("accepted")`)
	page.Click("Pause…")
	page.Fill("Reason", "moving house")
	page.Click("Pause")
	page.WaitText("moving house")
	page.Settle()
	page.Click("Resume")
	page.Wait(`!document.body.innerText.includes("moving house")`)
	page.Settle()
	page.Click("Rotate…")
	page.Click("Rotate")
	page.WaitText("New signing secret")
	page.Click("Close")
	page.Wait(`document.querySelector("table[aria-label='Signing secrets']").querySelectorAll("tbody tr").length === 2`)
	page.Settle()
	page.Click("Edit")
	page.WaitText("Edit endpoint")
	page.Settle()
	page.Fill("Description", "Books")
	page.Fill("Retries", "3")
	page.Click("Save")
	page.WaitText("max_retries")
	page.Settle()
	page.Click("Delete…")
	word := browsertest.Value[string](page, `document.querySelector("dialog[open] label code").innerText`)
	page.Fill("Type "+word+" to confirm", word)
	page.Click("Delete the endpoint")
	page.Wait(`location.pathname.startsWith("/ui/commands/cmd_")`)
	page.WaitText("was deleted")
	page.WaitText("Verified in this browser")
	page.Settle()
	page.Go("/ui/endpoints?find=accounting")
	page.WaitText("No endpoint fits these filters")
	page.Go("/ui/endpoints?find=WAREH")
	page.Wait(`document.querySelectorAll("tbody tr").length === 1`)
	page.Go("/ui/endpoints")
	page.Wait(`!document.body.innerText.includes("accounting")`)
}

func watches(t *testing.T, s *scene, page *browsertest.Page) {
	page.Go("/ui/live?find=live.")
	page.WaitText("connected")
	for i := range 300 {
		s.Publish("live.test", fmt.Sprintf(`{"n":%d}`, i))
	}
	page.Wait(`[...document.querySelectorAll("tbody tr")].length === 100`)
	page.Click("Pause")
	page.WaitText("connected, paused")
	page.Click("Clear")
	page.Wait(`document.querySelectorAll("tbody tr").length === 0`)
	page.Click("Go on")
	s.Publish("live.again", `{}`)
	page.WaitText("live.again")
}

func showsHostileText(t *testing.T, s *scene, page *browsertest.Page) {
	for _, path := range []string{"/ui/events/" + s.paid.String(), "/ui/deliveries/" + s.retried.String(), "/ui/deliveries/" + s.dead.String(), "/ui/endpoints", "/ui/endpoints/" + s.good.ID.String(), "/ui/live"} {
		page.Go(path)
		if title := browsertest.Value[string](page, `document.title`); strings.Contains(title, "owned") {
			t.Errorf("%s runs script of a stranger", path)
		}
		if n := browsertest.Value[int](page, `document.querySelectorAll("main img, main script").length`); n != 0 {
			t.Errorf("%s made %d elements of text", path, n)
		}
	}
	page.Go("/ui/deliveries/" + s.retried.String())
	page.WaitText(`<img src=x onerror=`)
}

func signsOut(t *testing.T, s *scene, page *browsertest.Page) {
	page.Click("Sign out")
	page.WaitText("Sign in to Godwit")
	page.Load(s.URL + "/ui/events")
	page.WaitText("Sign in to Godwit")
}
