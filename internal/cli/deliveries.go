package cli

type deliveriesCommand struct {
	List   listCommand[deliveryFilter] `cmd:"" help:"List deliveries."`
	Get    getCommand                  `cmd:"" help:"Show a delivery and its attempts."`
	Retry  retryDeliveriesCommand      `cmd:"" help:"Try a delivery now, or all that match. One that has ended starts a new run."`
	Cancel cancelDeliveriesCommand     `cmd:"" help:"End a delivery that waits, or all that match. \"retry\" takes them up again."`
}

type deliveryFilter struct {
	Endpoint string     `name:"endpoint" complete:"endpoints" help:"Only to this endpoint." placeholder:"SUB_ID"`
	Event    string     `name:"event" complete:"events" help:"Only of this event." placeholder:"EVT_ID"`
	Type     string     `name:"type" complete:"types" help:"Only events of this type." placeholder:"TYPE"`
	Status   string     `name:"status" enum:",pending,accepted,terminal,exhausted,cancelled" default:"" help:"Only those that are pending, accepted, terminal, exhausted or cancelled." placeholder:"STATUS"`
	Range    timeFilter `embed:""`
}

var deliveryColumns = []column{
	{title: "DELIVERY", path: "id", kind: id},
	{title: "STATUS", path: "status"},
	{title: "TYPE", path: "event_type"},
	{title: "ENDPOINT", path: "endpoint_id", kind: id, spare: true},
	{title: "ATTEMPTS", path: "attempt_count", kind: number, spare: true},
	{title: "LAST", path: "last_status", kind: number, spare: true},
	{title: "UPDATED", path: "updated_at", kind: when},
	{title: "DUE", path: "due_at", kind: when, spare: true},
	{title: "REASON", path: "reason", spare: true},
}

var attemptColumns = []column{
	{title: "#", path: "n", kind: number},
	{title: "STARTED", path: "started_at", kind: when},
	{title: "OUTCOME", path: "outcome"},
	{title: "STATUS", path: "status", kind: number},
	{title: "REASON", path: "reason"},
	{title: "MS", path: "duration_ms", kind: number},
	{title: "TRIGGER", path: "trigger", spare: true},
	{title: "NEXT", path: "next_at", kind: when, spare: true},
}

var deliveries = &resource{
	noun: "delivery", path: "deliveries",
	columns: deliveryColumns,
	parts:   map[string][]column{"attempts": attemptColumns},
	verbs: map[string]verb{
		"retry":  {part: "retry", row: true},
		"cancel": {part: "cancel", row: true},
	},
	details: map[string]string{
		"": `A delivery is one event for one endpoint. "godwit tail" follows the attempts as they happen.

Examples:

    godwit deliveries list --status pending --endpoint sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit deliveries list --watch
    godwit deliveries get del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit deliveries retry del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit deliveries retry --endpoint customer-42 --since 1d
    godwit deliveries cancel --type order.paid --dry-run`,
		"retry": `With filters it counts what matches, asks, and goes on in parts until all are due. Without --status that is what has not arrived: pending, terminal and exhausted
deliveries. Without a terminal it needs --yes.

Examples:

    godwit deliveries retry del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit deliveries retry --since 2026-11-01 --until 2026-11-02 --status exhausted
    godwit deliveries retry --all --yes`,
		"cancel": `With filters it counts what waits, asks, and goes on in parts until all have ended. A delivery that is under way at that moment is left alone. Without a terminal it
needs --yes.

Examples:

    godwit deliveries cancel del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit deliveries cancel --endpoint customer-42 --dry-run`,
	},
}
