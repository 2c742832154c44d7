package cli

import (
	"fmt"
	"io"
)

type eventsCommand struct {
	List    listCommand[eventFilter]       `cmd:"" help:"List events."`
	Search  searchCommand                  `cmd:"" help:"Search events, also by text in their payloads."`
	Get     getCommand                     `cmd:"" help:"Show an event and its deliveries."`
	Body    eventBodyCommand               `cmd:"" help:"Print the body of an event, byte for byte."`
	Explain explainCommand                 `cmd:"" help:"Say for each endpoint why it got an event, or did not."`
	Replay  actCommand[replayEventMembers] `cmd:"" help:"Deliver an event again, under the same idempotency key."`
}

// timeFilter restricts a list to a range of time.
type timeFilter struct {
	Since moment `name:"since" help:"Only at or after this time: 2h (that long ago), 2006-01-02, \"2006-01-02 15:04\" or RFC 3339." placeholder:"TIME"`
	Until moment `name:"until" help:"Only before this time, written as with --since." placeholder:"TIME"`
}

type eventFilter struct {
	Type  string     `name:"type" complete:"types" help:"Only of this type." placeholder:"TYPE"`
	Key   string     `name:"idempotency-key" api:"key" help:"Only with this idempotency key." placeholder:"KEY"`
	Range timeFilter `embed:""`
}

type replayEventMembers struct {
	Endpoints []string `name:"endpoint" api:"endpoints" complete:"endpoints" help:"Only to this endpoint; may be given more than once. Defaults to all that had it." placeholder:"SUB_ID"`
}

// eventBodyCommand prints the body of an event.
type eventBodyCommand struct {
	itemArg    `embed:""`
	Connection `embed:""`
}

// Run prints the body.
func (c *eventBodyCommand) Run(s *Session) error {
	cl, id, err := c.open(s, events, &c.Connection)
	if err != nil {
		return err
	}
	body, err := cl.Resource(events.path).Of(id, "body").Stream(s.Context, nil)
	if err != nil {
		return fmt.Errorf("get body of event: %w", err)
	}
	defer body.Close()
	_, err = io.Copy(s.Stdout, body)
	return err
}

var events = &resource{
	noun: "event", path: "events",
	columns: []column{
		{title: "EVENT", path: "id", kind: id},
		{title: "TYPE", path: "type"},
		{title: "CREATED", path: "created_at", kind: when},
		{title: "IDEMPOTENCY KEY", path: "idempotency_key", kind: id},
		{title: "CONTENT TYPE", path: "content_type", spare: true},
		{title: "ATTRIBUTES", path: "attributes", spare: true},
	},
	parts: map[string][]column{"deliveries": deliveryColumns},
	verbs: map[string]verb{"replay": {part: "replay", list: deliveryColumns}},
	details: map[string]string{
		"": `Events are posted with "godwit send".

Examples:

    godwit events list --type order.paid --since 2h
    godwit events search "order 4711" --since 7d
    godwit events get evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit events body evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f | jq .
    godwit events explain evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit events replay evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`,
		"search": `The text is looked for in payloads and idempotency keys, byte for byte, whatever the case of ASCII letters. There is no index of payloads: a search reads the
events, newest first, and prints what it finds at once.

Examples:

    godwit events search "order 4711" --since 7d
    godwit events search --attribute country:de --type order.*
    godwit events search --source stripe --json --limit 500`,
		"list": `Examples:

    godwit events list --since 2026-11-01 --until 2026-11-02 --all --json
    godwit events list --watch --type order.paid`,
	},
}
