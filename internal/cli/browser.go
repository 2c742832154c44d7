package cli

import (
	"encoding/json"
	"fmt"

	"github.com/godwit-hq/godwit/internal/config"
)

type sessionsCommand struct {
	List listCommand[sessionFilter] `cmd:"" help:"List browsers that have signed in."`
	Get  getCommand                 `cmd:"" help:"Show a session."`
	End  deleteCommand              `cmd:"" help:"End a session."`
}

type sessionFilter struct {
	Kind string `name:"kind" enum:",dashboard,portal" default:"" help:"Only sessions of this kind." placeholder:"dashboard|portal"`
}

var sessions = &resource{
	noun: "session", path: "sessions",
	columns: []column{
		{title: "SESSION", path: "id", kind: id},
		{title: "KIND", path: "kind"},
		{title: "NAME", path: "name"},
		{title: "USED", path: "last_used_at", kind: when},
		{title: "EXPIRES", path: "expires_at", kind: when, spare: true},
		{title: "ADDRESS", path: "address", spare: true},
		{title: "BROWSER", path: "user_agent", spare: true},
	},
	details: map[string]string{
		"": `A session is a browser that has signed in to the dashboard, or opened a portal; docs/sessions.md describes them. Revoking a key ends its sessions.

Examples:

    godwit sessions list
    godwit sessions list --kind portal --tenant acme
    godwit sessions end ses_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`,
	},
}

type portalLinksCommand struct {
	List   listCommand[none]            `cmd:"" help:"List portal links."`
	Get    getCommand                   `cmd:"" help:"Show a portal link."`
	Create createCommand[newPortalLink] `cmd:"" help:"Create a portal link, and print its URL."`
	Revoke deleteCommand                `cmd:"" help:"Revoke a portal link, and end the session that was made from it."`
}

type newPortalLink struct {
	Capabilities     []string         `name:"capabilities" help:"What the portal may do: view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types; several with commas. Required unless --body has it." placeholder:"NAME"`
	Name             string           `name:"name" help:"For lists." placeholder:"TEXT"`
	ExpiresIn        *config.Duration `name:"expires-in" help:"How long the link can be used. Defaults to 10 minutes." placeholder:"DURATION"`
	SessionExpiresIn *config.Duration `name:"session-expires-in" help:"How long its session lives at most. Defaults to a day." placeholder:"DURATION"`
	Theme            string           `name:"theme" enum:",light,dark,system" default:"" help:"Colours." placeholder:"light|dark|system"`
	ReturnURL        string           `name:"return-url" help:"Where the portal leads back to." placeholder:"URL"`
	StartPage        string           `name:"start-page" help:"Page that is shown first, such as endpoints." placeholder:"PAGE"`
	HideNavigation   *bool            `name:"hide-navigation" help:"For a portal in a frame of a page with navigation of its own."`
}

var portalLinks = &resource{
	noun: "portal link", path: "portal-links",
	columns: []column{
		{title: "LINK", path: "id", kind: id},
		{title: "NAME", path: "name"},
		{title: "CAPABILITIES", path: "capabilities", spare: true},
		{title: "EXPIRES", path: "expires_at", kind: when, spare: true},
		{title: "USED", path: "used_at", kind: when},
		{title: "SESSION", path: "session_id", kind: id, spare: true},
	},
	details: map[string]string{
		"": `A portal link opens the portal of a tenant, once. Its session can do what the capabilities say, for that tenant alone; docs/sessions.md describes it.

Examples:

    godwit portal-links create --tenant acme --capabilities view_endpoints,manage_endpoints,event_types
    godwit portal-links list --tenant acme
    godwit portal-links revoke lnk_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --tenant acme`,
	},
}

// dashboardCommand asks a server for a link that signs in.
type dashboardCommand struct {
	JSON       bool `name:"json" help:"Print the JSON object that the API answers with."`
	Connection `embed:""`
}

// Help returns the text that --help shows.
func (dashboardCommand) Help() string {
	return `Prints a URL that opens the dashboard of the server, signed in with the API key of the context. It is good once, for five minutes.

Examples:

    godwit dashboard
    xdg-open "$(godwit dashboard)"`
}

// Run prints the link.
func (c *dashboardCommand) Run(s *Session) error {
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	text, err := cl.Resource("sign-in-links").Post(s.Context, map[string]any{})
	if err != nil {
		return fmt.Errorf("create sign-in link: %w", err)
	}
	if c.JSON {
		return s.printJSON(text)
	}
	var link struct{ URL string }
	if err := json.Unmarshal(text, &link); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	_, err = fmt.Fprintln(s.Stdout, Printable(link.URL))
	return err
}
