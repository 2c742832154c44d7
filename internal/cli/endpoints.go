package cli

import (
	"net/http"

	"github.com/godwit-hq/godwit/internal/config"
)

type endpointsCommand struct {
	List         listCommand[endpointFilter]  `cmd:"" help:"List endpoints."`
	Get          getCommand                   `cmd:"" help:"Show an endpoint."`
	Create       createCommand[newEndpoint]   `cmd:"" help:"Create an endpoint, and show its signing secret this once."`
	Update       updateCommand[endpointPatch] `cmd:"" help:"Change an endpoint."`
	Delete       deleteCommand                `cmd:"" help:"Delete an endpoint and cancel its waiting deliveries."`
	Pause        actCommand[pauseMembers]     `cmd:"" help:"Hold the deliveries of an endpoint."`
	Resume       actCommand[none]             `cmd:"" help:"Deliver to a paused or disabled endpoint again."`
	Test         actCommand[none]             `cmd:"" help:"Send a test event through the usual path."`
	Probe        actCommand[none]             `cmd:"" help:"Send one signed request now, and show what came back."`
	Explain      actCommand[explainMembers]   `cmd:"" help:"Say whether an endpoint would get an event, and why."`
	Stats        actCommand[none]             `cmd:"" help:"Show health, waiting deliveries and the policy in force."`
	Secrets      actCommand[none]             `cmd:"" help:"List the signing secrets of an endpoint, without their values."`
	Rotate       actCommand[rotateMembers]    `cmd:"" help:"Sign with a new secret, and show it this once."`
	RevokeSecret revokeSecretCommand          `cmd:"" help:"Stop signing with a secret at once."`
}

type endpointFilter struct {
	Status string `name:"status" enum:",active,paused,disabled" default:"" help:"Only those that are active, paused or disabled." placeholder:"STATUS"`
	Search string `name:"search" help:"Only endpoints whose URL, uid or description has this part." placeholder:"TEXT"`
	Health string `name:"health" enum:",healthy,failing,open" default:"" help:"Only active endpoints that are healthy, failing, or have an open circuit." placeholder:"HEALTH"`
}

// endpointMembers are the members of an endpoint that can be given at its creation and changed later.
type endpointMembers struct {
	Description *string             `name:"description" help:"What it is for." placeholder:"TEXT"`
	Patterns    []string            `name:"patterns" help:"Event types that it wants, such as order.*; several with commas." placeholder:"PATTERN"`
	Filter      map[string][]string `name:"filter" help:"Only events whose attribute has one of these values; may be given more than once." placeholder:"NAME=VALUE,…"`
	Content     jsonText            `name:"content-filter" api:"content_filter" help:"Conditions on the content of events, a JSON object; docs/filters.md lists the operators." placeholder:"JSON|@FILE"`
	Headers     map[string]string   `name:"header" api:"headers" mapsep:"none" help:"Header of each delivery; may be given more than once." placeholder:"NAME=VALUE"`
	Method      *string             `name:"method" help:"POST or PUT." placeholder:"METHOD"`
	Policy      jsonText            `name:"policy" help:"Retries, rate and limits, as JSON or @FILE; docs/eds.md lists the members." placeholder:"JSON|@FILE"`
	Auth        jsonText            `name:"auth" help:"Credential that deliveries carry, as @FILE with JSON: a command line is open to all users." placeholder:"@FILE"`
	Signing     *string             `name:"signing" help:"Whose keys sign: own, or environment for those of the environment." placeholder:"own|environment"`
	Metadata    jsonText            `name:"metadata" help:"Your own data about it, a JSON object." placeholder:"JSON|@FILE"`
}

type newEndpoint struct {
	To        string          `arg:"" name:"to" api:"url" optional:"" help:"URL where deliveries go. Required unless --body has it."`
	Profile   string          `name:"profile" help:"How deliveries look: eds, ojs, cybercube or standard-webhooks." enum:",eds,ojs,cybercube,standard-webhooks" default:"" placeholder:"NAME"`
	Algorithm string          `name:"algorithm" help:"Of signatures: hmac-sha256 or ed25519." enum:",hmac-sha256,ed25519" default:"" placeholder:"NAME"`
	UID       string          `name:"uid" help:"Your own id of the endpoint." placeholder:"UID"`
	Secret    secretFile      `name:"secret-file" api:"secret" help:"File with your own signing secret. Defaults to a new one." placeholder:"FILE" type:"path"`
	Paused    bool            `name:"paused" help:"Start paused."`
	Members   endpointMembers `embed:""`
}

type endpointPatch struct {
	To      string          `name:"to" api:"url" help:"URL where deliveries go." placeholder:"URL"`
	Members endpointMembers `embed:""`
}

type pauseMembers struct {
	Reason string `name:"reason" help:"Why; it is shown with the endpoint." placeholder:"TEXT"`
}

type explainMembers struct {
	Event      string            `name:"event" help:"Id of a stored event." placeholder:"EVT_ID"`
	Type       string            `name:"type" help:"Type of an event that may come." placeholder:"TYPE"`
	Attributes map[string]string `name:"attribute" api:"attributes" mapsep:"none" help:"Attribute of that event; may be given more than once." placeholder:"NAME=VALUE"`
	Body       jsonText          `name:"body" help:"Body of that event." placeholder:"JSON|@FILE"`
	Content    jsonText          `name:"content-filter" api:"content_filter" help:"A filter to try in place of the endpoint's own." placeholder:"JSON|@FILE"`
}

type rotateMembers struct {
	Overlap   *config.Duration `name:"overlap" api:"overlap_seconds" help:"How long the former secret signs, too. Defaults to the server's." placeholder:"DURATION"`
	Algorithm string           `name:"algorithm" help:"Of signatures: hmac-sha256 or ed25519." enum:",hmac-sha256,ed25519" default:"" placeholder:"NAME"`
	Secret    secretFile       `name:"secret-file" api:"secret" help:"File with your own signing secret. Defaults to a new one." placeholder:"FILE" type:"path"`
}

var secretColumns = []column{
	{title: "SECRET", path: "id", kind: id},
	{title: "ALGORITHM", path: "algorithm"},
	{title: "LIVE", path: "live"},
	{title: "ENDS", path: "hint"},
	{title: "SIGNS FROM", path: "not_before", kind: when},
	{title: "EXPIRES", path: "expires_at", kind: when},
}

var endpoints = &resource{
	noun: "endpoint", path: "endpoints",
	columns: []column{
		{title: "ENDPOINT", path: "id", kind: id},
		{title: "UID", path: "uid", spare: true},
		{title: "STATUS", path: "status"},
		{title: "URL", path: "url"},
		{title: "PATTERNS", path: "patterns"},
		{title: "PROFILE", path: "profile", spare: true},
		{title: "CREATED", path: "created_at", kind: when, spare: true},
		{title: "DESCRIPTION", path: "description", spare: true},
	},
	verbs: map[string]verb{
		"pause":   {part: "pause", row: true},
		"resume":  {part: "resume", row: true},
		"test":    {part: "test"},
		"probe":   {part: "probe"},
		"explain": {part: "explain"},
		"stats":   {part: "stats", method: http.MethodGet},
		"secrets": {part: "secrets", method: http.MethodGet, list: secretColumns},
		"rotate":  {part: "rotate-secret"},
	},
	details: map[string]string{
		"": `An endpoint is a URL that gets the events that its patterns select.

Examples:

    godwit endpoints create https://example.com/hooks --patterns 'order.*'
    godwit endpoints list --status disabled
    godwit endpoints update sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --patterns 'order.*,invoice.*'
    godwit endpoints rotate sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --overlap 24h
    godwit endpoints probe sub_018f…7c8d9e0f`,
		"create": `The answer has the signing secret, this once: give it to the receiver.

Examples:

    godwit endpoints create https://example.com/hooks --patterns 'order.*,invoice.paid' --description 'order system'
    godwit endpoints create https://example.com/hooks --tenant acme --uid orders
    godwit endpoints create https://example.com/hooks --filter region=eu,us --header X-Team=billing
    godwit endpoints create https://example.com/hooks --content-filter '{"body":{"amount":{"$gte":100}}}'
    godwit endpoints create https://example.com/hooks --auth @credential.json --policy '{"timeout_seconds":5}'
    godwit endpoints create --body endpoint.json --json`,
		"update": `Only the members that are named change. Lists and maps are replaced as a whole, but for --header, which adds to them.

Examples:

    godwit endpoints update sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --to https://new.example.com/hooks
    godwit endpoints update sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --body '{"description":null,"policy":null}'`,
		"delete": `Asks at a terminal; elsewhere it needs --yes.

Example:

    godwit endpoints delete sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --yes`,
		"explain": `Judges an event by the endpoint's patterns, filter and content filter as they are now. Nothing is stored or sent.

Examples:

    godwit endpoints explain sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --event evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e11
    godwit endpoints explain sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --type order.paid --body '{"amount":5}' --content-filter '{"body":{"amount":{"$gte":100}}}'`,
		"rotate": `Deliveries are signed with both secrets until the overlap is over, so that the receiver can change over in between.

Example:

    godwit endpoints rotate sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --overlap 48h --json | jq -r .value`,
		"revoke-secret": `For a secret that leaked. The server asks for a confirmation, which this command gives after asking you.

Examples:

    godwit endpoints secrets sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit endpoints revoke-secret sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f sec_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e00`,
	},
}
