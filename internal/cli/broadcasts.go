package cli

import "net/url"

type broadcastsCommand struct {
	List    listCommand[none]       `cmd:"" help:"List broadcasts."`
	Get     getCommand              `cmd:"" help:"Show the progress of a broadcast."`
	Tenants broadcastTenantsCommand `cmd:"" help:"List the tenants of a broadcast that have a result."`
}

// broadcastTenantsCommand lists the results of a broadcast.
type broadcastTenantsCommand struct {
	itemArg    `embed:""`
	Skipped    bool `name:"skipped" help:"Only tenants that get no event, with the reason."`
	pageFlags  `embed:""`
	Connection `embed:""`
}

// Run lists the results.
func (c *broadcastTenantsCommand) Run(s *Session) error {
	cl, id, err := c.open(s, broadcasts, &c.Connection)
	if err != nil {
		return err
	}
	filter := url.Values{}
	if c.Skipped {
		filter.Set("status", "skipped")
	}
	l := &listing{s: s, r: broadcasts, from: cl.Resource(broadcasts.path).Of(id, "tenants"), columns: broadcastTenantColumns, filter: filter, flags: c.pageFlags}
	return l.print()
}

var broadcastTenantColumns = []column{
	{title: "TENANT", path: "tenant_id", kind: id},
	{title: "UID", path: "uid"},
	{title: "STATUS", path: "status"},
	{title: "EVENT", path: "event_id", kind: id},
	{title: "REASON", path: "reason"},
	{title: "DETAIL", path: "detail", spare: true},
}

var broadcasts = &resource{
	noun: "broadcast", path: "broadcasts",
	columns: []column{
		{title: "BROADCAST", path: "id", kind: id},
		{title: "TYPE", path: "type"},
		{title: "STATE", path: "state"},
		{title: "TENANTS", path: "tenants"},
		{title: "ACCEPTED", path: "accepted"},
		{title: "SKIPPED", path: "skipped", spare: true},
		{title: "CREATED", path: "created_at", kind: when, spare: true},
	},
	details: map[string]string{
		"": `An event that was sent to several tenants, by "godwit send --tenants" or "--all-tenants", with the key of their environment; docs/platform.md describes
broadcasts.

Examples:

    godwit broadcasts list --watch
    godwit broadcasts get bct_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit broadcasts tenants bct_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --skipped`,
	},
}
