package cli

import "github.com/godwit-hq/godwit/internal/config"

type environmentsCommand struct {
	List   listCommand[none]               `cmd:"" help:"List environments."`
	Get    getCommand                      `cmd:"" help:"Show an environment."`
	Create createCommand[newEnvironment]   `cmd:"" help:"Create an environment."`
	Update updateCommand[environmentPatch] `cmd:"" help:"Change an environment."`
	Delete deleteCommand                   `cmd:"" help:"Delete an environment that has no tenants."`
}

// environmentMembers are the settings of an environment.
type environmentMembers struct {
	Live            *bool            `name:"live" negatable:"" help:"Whether it serves real customers."`
	EndpointProfile *string          `name:"endpoint-profile" help:"Profile of new endpoints: eds, ojs, cybercube or standard-webhooks." placeholder:"NAME"`
	EndpointPolicy  jsonText         `name:"endpoint-policy" help:"Policy of new endpoints, as JSON or @FILE." placeholder:"JSON|@FILE"`
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

type newEnvironment struct {
	UID     string             `arg:"" name:"uid" optional:"" help:"Your own id of the environment, such as staging. Required unless --body has it."`
	Name    string             `name:"name" help:"Name of the environment." placeholder:"TEXT"`
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
	details: map[string]string{
		"": `An environment, such as production or staging, owns tenants and the event types that they share; docs/platform.md describes it. Changes need
a key of the server with the scope admin. An id may be the caller's own uid.

Examples:

    godwit environments create staging --name Staging --no-live --event-validation strict
    godwit environments list
    godwit environments update staging --alert-emails ops@example.com
    godwit keys create --local --environment staging --scopes ingest,read,manage`,
	},
}
