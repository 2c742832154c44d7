package cli

import (
	"encoding/json"
	"errors"
	"fmt"
)

type usageCommand struct {
	List usageListCommand `cmd:"" default:"withargs" help:"List what tenants used."`
}

// usageFilter selects days.
type usageFilter struct {
	From string `name:"from" help:"First day, UTC. Defaults to the day 29 days before the last." placeholder:"DAY"`
	To   string `name:"to" help:"Last day, UTC. Defaults to today." placeholder:"DAY"`
}

type usageListCommand struct {
	By                       string `name:"by" help:"One row for each tenant, or one for each day with the sum of all tenants." enum:"tenant,day" default:"tenant"`
	listCommand[usageFilter] `embed:""`
}

// Run lists usage.
func (c *usageListCommand) Run(s *Session) error {
	if c.By == "tenant" {
		return c.listCommand.Run(s)
	}
	if c.Watch {
		return errors.New("--watch shows usage by tenant; leave --by out")
	}
	filter, err := query(&c.Filter, s.Now())
	if err != nil {
		return err
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	stream, err := cl.Resource(usages.path, "total").Stream(s.Context, filter)
	if err != nil {
		return fmt.Errorf("add up usage: %w", err)
	}
	defer stream.Close()
	var sum struct {
		Total map[string]any    `json:"total"`
		Days  []json.RawMessage `json:"days"`
	}
	if err := json.NewDecoder(stream).Decode(&sum); err != nil {
		return fmt.Errorf("add up usage: %w", err)
	}
	if c.JSON {
		return s.printLines(sum.Days)
	}
	sum.Total["day"] = "total"
	total, err := json.Marshal(sum.Total)
	if err != nil {
		return err
	}
	return s.printTable(usageColumns("", column{title: "DAY", path: "day"}), append(sum.Days, total))
}

// usageColumns returns the columns of counts, after those that say of what. The prefix is the path of the counts.
func usageColumns(prefix string, of ...column) []column {
	return append(of,
		column{title: "EVENTS", path: prefix + "events", kind: number},
		column{title: "DELIVERIES", path: prefix + "deliveries", kind: number},
		column{title: "ATTEMPTS", path: prefix + "attempts", kind: number},
		column{title: "BYTES IN", path: prefix + "bytes_accepted", kind: number, spare: true},
		column{title: "BYTES OUT", path: prefix + "bytes_sent", kind: number, spare: true},
	)
}

var usages = &resource{
	noun: "usage", path: "usage", idPath: "tenant_id",
	columns: usageColumns("total.", column{title: "TENANT", path: "tenant_id", kind: id}, column{title: "UID", path: "tenant_uid"}),
	details: map[string]string{
		"": `What each tenant used is counted by day, in UTC, and kept for 13 months; docs/platform.md says what counts. A key of an environment sees all its
tenants, also deleted ones. --tenant shows one.

Examples:

    godwit usage --from 2026-10-01 --to 2026-10-31 --all --json
    godwit usage --by day
    godwit usage --by day --tenant customer-42`,
	},
}
