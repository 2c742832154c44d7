package cli

import (
	"net/http"

	"github.com/godwit-hq/godwit/internal/config"
)

type sourcesCommand struct {
	List            listCommand[none]           `cmd:"" help:"List sources."`
	Get             getCommand                  `cmd:"" help:"Show a source."`
	Create          createCommand[newSource]    `cmd:"" help:"Create a source, and show a credential that the server made this once."`
	Update          updateCommand[sourcePatch]  `cmd:"" help:"Change a source."`
	Delete          deleteCommand               `cmd:"" help:"Delete a source: its upstream is refused from then on."`
	Pause           actCommand[none]            `cmd:"" help:"Tell the upstream to come again later."`
	Resume          actCommand[none]            `cmd:"" help:"Take deliveries of the upstream again."`
	Rotate          actCommand[rotateSource]    `cmd:"" help:"Give the source another credential."`
	Acknowledge     actCommand[acknowledgement] `cmd:"" help:"Record that the upstream's operator has read this server's service description."`
	Acknowledgments partListCommand             `cmd:"" help:"List who has read this server's service description."`
	Rejections      partListCommand             `cmd:"" help:"List deliveries of the upstream that were refused."`
}

// sourceMembers are the settings of a source.
type sourceMembers struct {
	Description *string  `name:"description" help:"What it is for." placeholder:"TEXT"`
	Mode        *string  `name:"mode" help:"store-and-forward or pass-through." placeholder:"MODE"`
	Adopt       *bool    `name:"adopt" negatable:"" help:"Use the upstream's idempotency keys for deliveries."`
	KeepHeaders []string `name:"keep-headers" help:"Headers of the upstream that deliveries carry." placeholder:"NAME"`
	EventType   jsonText `name:"event-type" help:"Where the type of an event comes from, a JSON object; docs/relay.md." placeholder:"JSON|@FILE"`
	Settings    jsonText `name:"settings" help:"Settings of the scheme, a JSON object; docs/relay.md." placeholder:"JSON|@FILE"`
}

type newSource struct {
	Name        string        `arg:"" name:"name" optional:"" help:"Name of the source. Required unless --body has it."`
	Scheme      string        `name:"scheme" help:"How the upstream proves itself, such as github, stripe, eds, bearer, mtls; docs/relay.md lists all." placeholder:"NAME"`
	Credentials jsonText      `name:"credentials" help:"Credentials of the upstream, @FILE with a JSON array: a command line is open to all users. Defaults to a new one." placeholder:"@FILE"`
	Members     sourceMembers `embed:""`
}

type sourcePatch struct {
	Name    string        `name:"name" help:"Another name." placeholder:"TEXT"`
	Members sourceMembers `embed:""`
}

type rotateSource struct {
	Overlap    config.Duration `name:"overlap" api:"overlap_seconds" help:"How long the former credential is accepted, too. Defaults to the server's." placeholder:"DURATION"`
	Credential jsonText        `name:"credential" help:"The new credential, @FILE with a JSON object. Defaults to one that the server makes." placeholder:"@FILE"`
}

type acknowledgement struct {
	Version string `name:"version" help:"Version of the service description that was read, as /.well-known/webhook-service shows it." placeholder:"TEXT" required:""`
	By      string `name:"by" help:"Who agreed to it, on the upstream's side." placeholder:"NAME" required:""`
}

var sources = &resource{
	noun: "source", path: "sources",
	columns: []column{
		{title: "SOURCE", path: "id", kind: id},
		{title: "NAME", path: "name"},
		{title: "SCHEME", path: "scheme"},
		{title: "STATUS", path: "status"},
		{title: "MODE", path: "mode", spare: true},
		{title: "PATH", path: "path"},
		{title: "LAST RECEIVED", path: "last_received_at", kind: when, spare: true},
		{title: "CREATED", path: "created_at", kind: when, spare: true},
	},
	verbs: map[string]verb{
		"pause":       {part: "pause", row: true},
		"resume":      {part: "resume", row: true},
		"rotate":      {part: "rotate"},
		"acknowledge": {part: "acknowledgments"},
		"acknowledgments": {part: "acknowledgments", method: http.MethodGet, list: []column{
			{title: "VERSION", path: "version"}, {title: "BY", path: "by"}, {title: "ACTOR", path: "actor", kind: id}, {title: "AT", path: "at", kind: when},
		}},
		"rejections": {part: "rejections", method: http.MethodGet, list: []column{
			{title: "AT", path: "at", kind: when}, {title: "STATUS", path: "status", kind: number}, {title: "CODE", path: "code"}, {title: "FROM", path: "remote_addr"},
			{title: "SIZE", path: "size", kind: number, spare: true}, {title: "DETAIL", path: "detail", spare: true},
		}},
	},
	details: map[string]string{
		"": `An upstream delivers its webhooks to the path of a source; docs/relay.md describes schemes and settings.

Examples:

    godwit sources create github --scheme github --credentials @credentials.json
    godwit sources list
    godwit sources rejections src_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit sources rotate src_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --overlap 24h`,
	},
}
