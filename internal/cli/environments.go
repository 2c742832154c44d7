package cli

import (
	"net/http"

	"github.com/godwit-hq/godwit/internal/config"
)

type environmentsCommand struct {
	List   listCommand[none]               `cmd:"" help:"List environments."`
	Get    getCommand                      `cmd:"" help:"Show an environment."`
	Create createCommand[newEnvironment]   `cmd:"" help:"Create an environment."`
	Update updateCommand[environmentPatch] `cmd:"" help:"Change an environment."`
	Delete deleteCommand                   `cmd:"" help:"Delete an environment that has no tenants."`
	Keys   actCommand[none]                `cmd:"" help:"List the signing keys of an environment."`
	Rotate actCommand[rotateKeysMembers]   `cmd:"" help:"Sign with a new key for the endpoints that the environment signs for."`
	Revoke revokeKeyCommand                `cmd:"" name:"revoke-key" help:"Stop signing with a key of the environment at once."`
}

// environmentMembers are the settings of an environment.
type environmentMembers struct {
	Live            *bool            `name:"live" negatable:"" help:"Whether it serves real customers."`
	EndpointProfile *string          `name:"endpoint-profile" help:"Profile of new endpoints: eds, ojs, cybercube or standard-webhooks." placeholder:"NAME"`
	EndpointPolicy  jsonText         `name:"endpoint-policy" help:"Policy of new endpoints, as JSON or @FILE." placeholder:"JSON|@FILE"`
	EndpointSigning *string          `name:"endpoint-signing" help:"Whose keys sign for new endpoints that say nothing: own or environment." placeholder:"own|environment"`
	RequireKey      *bool            `name:"require-idempotency-key" negatable:"" help:"Refuse events without Idempotency-Key, unless a tenant has another setting."`
	AlertEmails     []string         `name:"alert-emails" help:"E-mail addresses that are told of dead letters and disabled endpoints." placeholder:"ADDRESS"`
	KeepEvents      *config.Duration `name:"keep-events" api:"retention_events_seconds" help:"How long events are kept once they are delivered; at most as long as the server keeps them. 0: as the server." placeholder:"DURATION"`
	KeepDeadLetters *config.Duration `name:"keep-dead-letters" api:"retention_dead_letters_seconds" help:"How long dead letters are kept. 0: as the server." placeholder:"DURATION"`
	MakeTenants     *bool            `name:"make-tenants" negatable:"" help:"Create a tenant when the first request that changes something names it."`
	EventValidation *string          `name:"event-validation" help:"known: events whose type has a schema must fit it. strict: unknown types are refused, too." placeholder:"known|strict"`
	AllowedOrigins  []string         `name:"allowed-origins" help:"Origins of pages that may show the portal in a frame." placeholder:"ORIGIN"`
	Theme           jsonText         `name:"theme" help:"Look of the portal, as JSON or @FILE." placeholder:"JSON|@FILE"`
	Limits          map[string]int64 `name:"limits" mapsep:"," help:"What each tenant without limits of its own may use, replaced as a whole: events_per_second, burst, endpoints, payload_bytes, waiting_deliveries, endpoint_creations_per_minute." placeholder:"NAME=N,…"`
}

type rotateKeysMembers struct {
	Overlap *config.Duration `name:"overlap" api:"overlap_seconds" help:"How long the other keys sign, too. Defaults to a day." placeholder:"DURATION"`
}

var signingKeyColumns = []column{
	{title: "KEY", path: "id", kind: id},
	{title: "ALGORITHM", path: "algorithm"},
	{title: "LIVE", path: "live"},
	{title: "CREATED", path: "created_at", kind: when},
	{title: "EXPIRES", path: "expires_at", kind: when},
	{title: "PUBLIC KEY", path: "public_key", spare: true},
}

// withDefaults names an environment after its uid.
func (n *newEnvironment) withDefaults(body map[string]any) {
	if _, named := body["name"]; !named && body["uid"] != nil {
		body["name"] = body["uid"]
	}
}

type newEnvironment struct {
	UID     string             `arg:"" name:"uid" optional:"" help:"Your own id of the environment, such as staging. Required unless --body has it."`
	Name    string             `name:"name" help:"Name of the environment. Defaults to the uid." placeholder:"TEXT"`
	Members environmentMembers `embed:""`
}

type environmentPatch struct {
	UID     string             `name:"uid" help:"Another id of your own." placeholder:"UID"`
	Name    string             `name:"name" help:"Another name." placeholder:"TEXT"`
	Members environmentMembers `embed:""`
}

var environments = &resource{
	noun: "environment", path: "environments",
	columns: []column{
		{title: "ENVIRONMENT", path: "id", kind: id},
		{title: "UID", path: "uid"},
		{title: "NAME", path: "name"},
		{title: "LIVE", path: "live"},
		{title: "VALIDATION", path: "event_validation", spare: true},
		{title: "KEY REQUIRED", path: "require_idempotency_key", spare: true},
		{title: "CREATED", path: "created_at", kind: when, spare: true},
	},
	verbs: map[string]verb{
		"keys":   {part: "signing-keys", method: http.MethodGet, list: signingKeyColumns},
		"rotate": {part: "signing-keys"},
	},
	details: map[string]string{
		"": `An environment, such as production or staging, owns tenants and the event types that they share; docs/platform.md describes it. Changes need
a key of the server with the scope admin. An id may be the caller's own uid.

Examples:

    godwit environments create staging --name Staging --no-live --event-validation strict
    godwit environments list
    godwit environments update staging --alert-emails ops@example.com
    godwit keys create --local --environment staging --scopes ingest,read,manage`,
		"keys": `They sign deliveries of the profile eds to endpoints whose signing is environment. Receivers find the public keys in the server's key directory.

Example:

    godwit environments keys production`,
		"rotate": `The new key signs at once. The others go on signing until the overlap is over, so that receivers find a signature that they know.

Example:

    godwit environments rotate production --overlap 48h`,
		"revoke-key": `For a key that leaked. The server asks for a confirmation, which this command gives after asking you.

Example:

    godwit environments revoke-key production sec_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e00`,
	},
}
