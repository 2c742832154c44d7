package cli

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

type tenantsCommand struct {
	List   listCommand[tenantFilter]  `cmd:"" help:"List tenants."`
	Get    getCommand                 `cmd:"" help:"Show a tenant."`
	Create createCommand[newTenant]   `cmd:"" help:"Create a tenant."`
	Update updateCommand[tenantPatch] `cmd:"" help:"Change a tenant."`
	Delete deleteTenantCommand        `cmd:"" help:"Delete a tenant with all that it has. A second key has to approve."`
}

// tenantFilter selects tenants.
type tenantFilter struct {
	Search string `name:"search" help:"Only tenants whose name or uid has this part." placeholder:"TEXT"`
	Health bool   `name:"health" help:"Also show how each does: endpoints that fail, deliveries that wait."`
}

// tenantMembers are the settings of a tenant.
type tenantMembers struct {
	RequireKey      *bool            `name:"require-idempotency-key" negatable:"" help:"Refuse events without Idempotency-Key."`
	AlertEmails     []string         `name:"alert-emails" help:"E-mail addresses that are told of dead letters and disabled endpoints." placeholder:"ADDRESS"`
	EventValidation *string          `name:"event-validation" help:"known: events whose type has a schema must fit it. strict: unknown types are refused, too." placeholder:"known|strict"`
	Limits          map[string]int64 `name:"limits" mapsep:"," help:"What the tenant may use, replaced as a whole: events_per_second, burst, endpoints, payload_bytes, waiting_deliveries, endpoint_creations_per_minute." placeholder:"NAME=N,…"`
}

type newTenant struct {
	Name    string        `arg:"" name:"name" optional:"" help:"Name of the tenant. Required unless --body has it."`
	UID     string        `name:"uid" help:"Your own id of the tenant." placeholder:"UID"`
	Members tenantMembers `embed:""`
}

type tenantPatch struct {
	UID     *string       `name:"uid" help:"Another id of your own." placeholder:"UID"`
	Name    string        `name:"name" help:"Another name." placeholder:"TEXT"`
	Members tenantMembers `embed:""`
}

// deleteTenantCommand deletes a tenant.
type deleteTenantCommand struct {
	itemArg       `embed:""`
	Yes           bool `name:"yes" short:"y" help:"Confirm without asking."`
	approvalFlags `embed:""`
	Connection    `embed:""`
}

// Run deletes the tenant.
func (c *deleteTenantCommand) Run(s *Session) error {
	cl, id, err := c.open(s, tenants, &c.Connection)
	if err != nil {
		return err
	}
	approve, err := c.approver(s)
	if err != nil {
		return err
	}
	if approve == nil && !s.Interactive {
		return fmt.Errorf("a second API key has to approve the deletion of a tenant, and there is no terminal to ask at: name its context with --approver-context")
	}
	if !c.Yes && s.Interactive {
		if err := s.showBefore(cl, tenants, id); err != nil {
			return fmt.Errorf("delete tenant: %w", err)
		}
	}
	steps := &twoSteps{s: s, part: cl.Resource(tenants.path).Of(id), method: http.MethodDelete, yes: c.Yes, approve: approve}
	if _, err := steps.run(fmt.Sprintf("Delete tenant %s with its endpoints, events and keys?", id)); err != nil {
		return fmt.Errorf("delete tenant: %w", err)
	}
	s.say("deleted %s", id)
	return nil
}

// failingEndpoints counts a tenant's endpoints that fail; empty if the list does not say.
func failingEndpoints(item any) string {
	if dig(item, "health") == nil {
		return ""
	}
	n := 0
	for _, state := range []string{"open", "failing"} {
		count, err := strconv.Atoi(plain(dig(item, "health.endpoints."+state)))
		if err == nil {
			n += count
		}
	}
	return strconv.Itoa(n)
}

var tenants = &resource{
	noun: "tenant", path: "tenants",
	columns: []column{
		{title: "TENANT", path: "id", kind: id},
		{title: "NAME", path: "name"},
		{title: "UID", path: "uid", spare: true},
		{title: "ACCOUNT", path: "account_id"},
		{title: "FAILING", kind: number, spare: true, show: failingEndpoints},
		{title: "WAITING", path: "health.waiting", kind: number, spare: true},
		{title: "LAST ACCEPTED", path: "health.last_accepted_at", kind: when, spare: true},
		{title: "VALIDATION", path: "event_validation", spare: true},
		{title: "KEY REQUIRED", path: "require_idempotency_key", spare: true},
		{title: "CREATED", path: "created_at", kind: when},
	},
	details: map[string]string{
		"": `The key needs the scope admin. Other commands act for a tenant with --tenant.

Examples:

    godwit tenants create acme --event-validation known
    godwit tenants update acme --limits events_per_second=100,burst=500,endpoints=20
    godwit tenants list
    godwit endpoints list --tenant ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`,
		"delete": `The deletion is confirmed in two steps, and a second admin key of the same tenant has to approve it, which is older than the request and was
made neither with the first key nor by it. --approver-context names a context with that key. Without it, the command says what the other
operator has to run, and asks for the token that this prints.

Examples:

    godwit tenants delete ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit tenants delete ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --yes --approver-context second`,
	},
}

// KeyList lists the keys of a tenant on a server.
type KeyList struct {
	listCommand[none] `embed:""`
}

// CreateKey creates a key on a server, prints its token, and tells of it.
func CreateKey(s *Session, conn *Connection, body map[string]any, asJSON bool) error {
	cl, err := conn.Client(s)
	if err != nil {
		return err
	}
	text, err := cl.Resource(keys.path).Post(s.Context, body)
	if err != nil {
		return fmt.Errorf("create key: %w", err)
	}
	if asJSON {
		return s.printJSON(text)
	}
	v, err := parseValue(text)
	if err != nil {
		return err
	}
	s.say("key     %s (%s)\nThe API key, shown this once:", plain(dig(v, "id")), plain(dig(v, "scopes")))
	_, err = fmt.Fprintln(s.Stdout, plain(dig(v, "token")))
	return err
}

// keyState says in words whether a key works.
func keyState(item any) string {
	if at, ok := dig(item, "revoked_at").(string); ok {
		return "revoked " + day(at)
	}
	if at, ok := dig(item, "expires_at").(string); ok {
		return "until " + day(at)
	}
	return "live"
}

// day is the date of a time.
func day(at string) string {
	date, _, _ := strings.Cut(at, "T")
	return date
}

var keys = &resource{
	noun: "key", path: "keys",
	columns: []column{
		{title: "KEY", path: "id", kind: id},
		{title: "NAME", path: "name"},
		{title: "BEGINS", path: "hint", show: func(item any) string { return plain(dig(item, "hint")) + "…" }},
		{title: "SCOPES", path: "scopes"},
		{title: "STATE", show: keyState},
		{title: "CREATED", path: "created_at", kind: when, spare: true},
	},
	details: map[string]string{
		"get": `Example:

    godwit keys get key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`,
	},
}
