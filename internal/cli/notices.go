package cli

type noticesCommand struct {
	List        listCommand[noticeFilter] `cmd:"" help:"List notices about endpoints and deliveries."`
	Acknowledge actCommand[none]          `cmd:"" help:"Mark a notice as seen."`
}

type noticeFilter struct {
	Open bool `name:"open" help:"Only those that nobody has acknowledged."`
}

var notices = &resource{
	noun: "notice", path: "notices",
	columns: []column{
		{title: "NOTICE", path: "id", kind: id},
		{title: "KIND", path: "kind"},
		{title: "ENDPOINT", path: "endpoint_id", kind: id},
		{title: "CREATED", path: "created_at", kind: when},
		{title: "ACKNOWLEDGED", path: "acknowledged_at", kind: when, spare: true},
		{title: "DETAIL", path: "detail", spare: true},
	},
	verbs: map[string]verb{"acknowledge": {part: "acknowledge", row: true}},
	details: map[string]string{
		"": `A notice tells people of an endpoint that is degraded or disabled, or of a dead letter.

Examples:

    godwit notices list --open
    godwit notices list --open --watch --json
    godwit notices acknowledge ntc_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`,
	},
}
