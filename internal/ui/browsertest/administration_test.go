package browsertest_test

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/ui/browsertest"
)

// The pages for what is set up, who may do what, and what was done: their flows first, then each page in both themes and at both widths. One
// server and one browser serve all of it.
func TestAdministrationPages(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		s := newScene(t, o)
		browser := browsertest.Start(t)
		page := browser.Open(t, s.URL+"/ui/")
		page.Expect(401, "/v1/sessions/current")
		page.SignIn(s.Key)
		eventTypeFlow(s, page)
		source := sourceFlow(s, page)
		keyFlow(page)
		command := commandFlow(s, page)
		sessionFlow(s, t, browser, page)
		tenant := tenantFlow(s, t, browser, page)
		environment := environmentFlow(s, page)
		if o.Postgres {
			return // the pages look the same
		}
		for _, at := range []struct{ name, path string }{
			{"event-types", "/ui/event-types"},
			{"event-types-standard", "/ui/event-types?standard=cybercube"},
			{"event-type", "/ui/event-types/order.paid"},
			{"event-type-edit", "/ui/event-types/order.paid?edit=1"},
			{"event-type-new", "/ui/event-types?new=1"},
			{"sources", "/ui/sources"},
			{"source", source},
			{"source-edit", source + "?edit=1"},
			{"source-new", "/ui/sources?new=1"},
			{"commands", "/ui/commands"},
			{"command-form", "/ui/commands/run/dead_letters.purge"},
			{"command", command},
			{"evidence", "/ui/evidence"},
			{"evidence-none", "/ui/evidence?command=no.such"},
			{"keys", "/ui/keys"},
			{"keys-new", "/ui/keys?new=1"},
			{"sessions", "/ui/sessions"},
			{"notices", "/ui/notices"},
			{"tenants", "/ui/tenants"},
			{"tenants-new", "/ui/tenants?new=1"},
			{"tenant", tenant},
			{"tenant-edit", tenant + "?edit=1"},
			{"environments", "/ui/environments"},
			{"environment", environment},
			{"environment-edit", environment + "?edit=1"},
			{"settings", "/ui/settings"},
			{"nodes", "/ui/nodes"},
		} {
			page.Go(at.path)
			page.Inspect(at.name)
		}
	})
}

// A type is added, changed in a way that its compatibility forbids, stored all the same, and compared with the version before.
func eventTypeFlow(s *scene, page *browsertest.Page) {
	page.Go("/ui/event-types")
	page.WaitText("The catalogue is empty")
	page.Click("Add a type")
	page.Fill("Name", "order.paid")
	page.Fill("Description", "An order was paid "+hostile)
	page.Fill("Schema", `{"type":"object","properties":{"order":{"type":"integer"},"note":{"type":"string"}},"required":["order"]}`)
	page.Fill("Example", `{"order":4711}`)
	page.Fill("Compatibility", "backward")
	page.Click("Add")
	page.WaitText("version 1 in force")

	page.Click("Edit")
	page.Fill("Schema", `{"type":"object","properties":{"order":{"type":"integer"},"note":{"type":"string"},"currency":{"type":"string"}},"required":["order","currency"]}`)
	page.Fill("Example", `{"order":4711,"currency":"EUR"}`)
	page.Expect(422, "/v1/event-types/order.paid")
	page.Click("Save")
	page.WaitText("is not backward compatible with version 1")
	page.Click("Store it although it is not compatible")
	page.Click("Save")
	page.WaitText("version 2 in force")
	page.WaitText("Version 1 to 2")
	page.WaitText(`"currency"`)

	page.Click("Send a sample")
	page.Click("Send")
	page.Click("see what became of it")
	page.WaitText("Payload")
	page.Settle()
}

// A source for GitHub is created, its secret is shown once, and a delivery with a wrong signature is listed with the reason.
func sourceFlow(s *scene, page *browsertest.Page) (path string) {
	page.Go("/ui/sources")
	page.WaitText("No sources yet")
	page.Click("Create a source")
	page.Fill("Name", "code")
	page.Fill("Description", "Our repositories "+hostile)
	page.Click("Create")
	page.WaitText("is shown this once")
	page.Click("I have copied it: how to set the upstream up")
	page.WaitText("Payload URL: " + s.URL + "/in/")
	page.Settle()
	var list struct{ Items []struct{ ID, Path string } }
	s.Must(apptest.Call{Path: "/v1/sources"}, &list)
	s.Call(apptest.Call{Path: list.Items[0].Path, Body: `{"zen":"` + hostile[:4] + `"}`, Header: map[string]string{"X-Hub-Signature-256": "sha256=00", "X-GitHub-Event": "ping", "X-GitHub-Delivery": "1"}})
	path = "/ui/sources/" + list.Items[0].ID
	page.Go("/ui/sources")
	page.Go(path)
	page.WaitText("401")

	page.Click("Pause")
	page.WaitText("Resume")
	page.Click("Rotate")
	page.Fill("Overlap in hours", "2")
	page.Click("Rotate")
	page.WaitText("is shown this once")
	page.Click("I have copied it")
	page.Click("Record one")
	page.Fill("Who agreed to it, on the upstream's side", "Ada of code")
	page.Click("Record")
	page.WaitText("Ada of code")
	page.Click("Resume")
	page.WaitText("Pause")
	page.Settle()
	return path
}

// A key is created, shown once, and revoked.
func keyFlow(page *browsertest.Page) {
	page.Go("/ui/keys?new=1")
	page.Fill("Name", "billing "+hostile)
	page.Click("ingest")
	page.Click("Create")
	page.WaitText("is shown this once")
	page.Click("I have copied it")
	page.WaitText("billing <img")
	page.Click("billing " + hostile)
	page.Click("Revoke")
	page.Click("Revoke the key")
	page.WaitText("revoked")
	page.Settle()
}

// An endpoint is deleted by a command that asks first; then its evidence is found by the endpoint's id and verified in the browser.
func commandFlow(s *scene, page *browsertest.Page) (path string) {
	gone := s.Endpoint(s.sink.URL("/gone"), apptest.Fields{"uid": "gone"})
	page.Go("/ui/commands")
	page.Click("endpoint.delete")
	page.WaitText("Id of the endpoint")
	page.Fill("Target", gone.ID.String())
	page.Click("Ask for it")
	page.WaitText("Nothing has been changed yet")
	page.Click("Confirm")
	page.WaitText("was deleted")

	page.Go("/ui/evidence?command=endpoint.delete&type=execution.executed&about=" + gone.ID.String())
	page.WaitText("Verified in this browser")
	page.WaitText("1 item of")
	page.Type("j")
	page.Wait(`document.querySelector('tr[aria-current="true"]') !== null`)
	page.Type("\r")
	page.WaitText("Verified in this browser.")
	page.WaitText("is the one whose digest stands in the evidence")
	page.WaitText(gone.ID.String())
	page.Settle()
	return browsertest.Value[string](page, `location.pathname`)
}

// A session of another browser is ended; that browser has to sign in again.
func sessionFlow(s *scene, t testing.TB, browser *browsertest.Browser, page *browsertest.Page) {
	other := browser.Open(t, s.URL+"/ui/")
	other.Expect(401, "/v1/")
	other.SignIn(s.NewKey(s.Tenant, godwit.ScopeRead))
	page.Go("/ui/sessions")
	page.Wait(`document.querySelectorAll("tbody tr").length === 2`)
	page.Do(`[...document.querySelectorAll("tbody tr")].find((r) => !r.innerText.includes("this one")).querySelector("button[aria-label^=End]").click()`)
	page.Click("End the session")
	page.Wait(`document.querySelectorAll("tbody tr").length === 1`)
	page.Settle()
	other.Go("/ui/endpoints")
	other.WaitText("Sign in to Godwit")
}

// A tenant is created and found by a part of its uid; its deletion needs a second person, who approves in a session of their own.
func tenantFlow(s *scene, t testing.TB, browser *browsertest.Browser, page *browsertest.Page) (path string) {
	approver := s.NewKey(s.Tenant, godwit.ScopeAdmin, godwit.ScopeAudit, godwit.ScopeRead) // older than the command, as it must be
	page.Go("/ui/tenants?new=1")
	page.Fill("Name", "Acme "+hostile)
	page.Fill("Own id (uid)", "acme-42")
	page.Click("Own limits")
	page.Fill("Events a second", "50")
	page.Click("Create")
	page.WaitText("events per second 50")
	page.Settle()
	path = browsertest.Value[string](page, `location.pathname`)
	page.Go("/ui/tenants?find=ME-4")
	page.WaitText("acme-42")
	page.WaitText("1 tenant\n")
	page.Go(path)
	page.Click("Delete")
	page.Fill("Type acme-42 to confirm", "acme-42")
	page.Click("Delete the tenant")
	page.WaitText("Another person must approve")
	page.Wait(`document.querySelector("dialog[open] code").innerText.includes("/ui/commands/cmd_")`)
	address := browsertest.Value[string](page, `document.querySelector("dialog[open] code").innerText`)

	// The second person has a key that the first did not make, and approves in a browser of their own.
	second := browser.Open(t, s.URL+"/ui/")
	second.Expect(401, "/v1/sessions/current")
	second.SignIn(approver)
	second.Load(address)
	second.Click("Approve")
	second.WaitText("Your approval")
	approval := browsertest.Value[string](second, `document.querySelector(".secret pre").textContent`)
	page.Fill("Approval", approval)
	page.Click("Delete the tenant")
	page.Wait(`location.pathname.startsWith("/ui/commands/cmd_")`)
	page.WaitText("Approved by")
	page.Settle()
	page.Go("/ui/tenants?find=acme-42")
	page.WaitText("No tenant has this")
	page.Settle()

	// Another one stays, to be looked at.
	var made struct{ ID string }
	s.Must(apptest.Call{Path: "/v1/tenants", Body: apptest.Fields{"name": "Acme " + hostile, "uid": "acme-43", "limits": apptest.Fields{"events_per_second": 50}}}, &made)
	return "/ui/tenants/" + made.ID
}

// An environment is created, gets a theme for the portal, and is chosen for all pages.
func environmentFlow(s *scene, page *browsertest.Page) (path string) {
	page.Go("/ui/environments?new=1")
	page.Fill("Name", "Staging")
	page.Fill("Own id (uid)", "staging")
	page.Fill("Pages that may frame it", "https://app.example.com")
	page.Click("Buttons and links, light")
	page.Fill("Colour: Buttons and links, light", "#7a1fa2")
	page.Fill("Title", "Acme hooks")
	page.Click("Create")
	page.WaitText("https://app.example.com")
	page.WaitText("Acme hooks")
	page.Settle()
	path = browsertest.Value[string](page, `location.pathname`)
	page.Go("/ui/environments")
	page.Click("Show Staging")
	page.Wait(`location.search.includes("environment=staging")`)
	page.Settle()
	page.Go("/ui/tenants?environment=staging")
	page.WaitText("No tenants yet")
	page.Settle()
	return path
}
