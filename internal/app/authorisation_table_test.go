package app_test

import "github.com/godwit-hq/godwit/internal/godwit"

// A rule says who may use a route, written down apart from the code that decides it.
type rule struct {
	open        bool           // without an API key; API keys change nothing
	tenant      []godwit.Scope // for a tenant, with one of these scopes
	environment []godwit.Scope // for an environment, with one of these scopes; none: the request must name a tenant
	body        string         // of requests that are to reach the handler; defaults to {}
	keys        bool           // for API keys alone; a session is refused
}

// keyOnly refuses sessions.
func (r rule) keyOnly() rule { r.keys = true; return r }

// with sets the body.
func (r rule) with(body string) rule { r.body = body; return r }

func (r rule) filledBody(ids map[string]string) string {
	if r.body == "" {
		return "{}"
	}
	return fill(r.body, ids)
}

const (
	ingest  = godwit.ScopeIngest
	read    = godwit.ScopeRead
	manage  = godwit.ScopeManage
	admin   = godwit.ScopeAdmin
	audit   = godwit.ScopeAudit
	metrics = godwit.ScopeMetrics
)

func tenants(scopes ...godwit.Scope) rule { return rule{tenant: scopes} }

var (
	everyone       = rule{open: true}
	ownSecret      = rule{open: true} // the credentials of the source decide
	readKeys       = rule{tenant: []godwit.Scope{read, manage, admin}, environment: []godwit.Scope{read, manage, admin}}
	writeKeys      = rule{tenant: []godwit.Scope{manage, admin}, environment: []godwit.Scope{manage, admin}}
	readAll        = rule{tenant: []godwit.Scope{read}, environment: []godwit.Scope{read, admin}}
	readTypes      = rule{tenant: []godwit.Scope{read}, environment: []godwit.Scope{read, admin}}
	writeTypes     = rule{tenant: []godwit.Scope{manage}, environment: []godwit.Scope{manage, admin}}
	readTenants    = rule{tenant: []godwit.Scope{admin}, environment: []godwit.Scope{read, manage, admin}}
	writeTenants   = rule{tenant: []godwit.Scope{admin}, environment: []godwit.Scope{manage, admin}}
	readBroadcasts = rule{tenant: []godwit.Scope{admin}, environment: []godwit.Scope{ingest, read, manage, admin}}
	administration = rule{tenant: []godwit.Scope{admin}, environment: []godwit.Scope{admin}}
	commands       = tenants(ingest, read, manage, admin, audit)
	ofCommands     = rule{tenant: commands.tenant, environment: commands.tenant}
	ofEvidence     = rule{tenant: []godwit.Scope{audit}, environment: []godwit.Scope{audit, admin}}
	anyKey         = rule{tenant: []godwit.Scope{ingest, read, manage, admin, audit}, environment: []godwit.Scope{ingest, read, manage, admin, audit}}
)

// rules has a line for every route of the server.
var rules = map[string]rule{
	"POST /v1/events":             tenants(ingest),
	"POST /v1/events/batch":       tenants(ingest).with(`[]`),
	"GET /v1/events":              tenants(read),
	"GET /v1/events/search":       tenants(read),
	"GET /v1/events/{id}":         tenants(read),
	"GET /v1/events/{id}/body":    tenants(read),
	"GET /v1/events/{id}/explain": tenants(read),
	"POST /v1/events/{id}/replay": tenants(manage),

	"GET /v1/broadcasts":              readBroadcasts,
	"GET /v1/broadcasts/{id}":         readBroadcasts,
	"GET /v1/broadcasts/{id}/tenants": readBroadcasts,

	"GET /v1/event-types":           readTypes,
	"GET /v1/event-types/{name}":    readTypes,
	"PUT /v1/event-types/{name}":    writeTypes,
	"DELETE /v1/event-types/{name}": writeTypes,
	"GET /v1/catalogue":             readTypes,

	"POST /v1/endpoints":                              tenants(manage),
	"GET /v1/endpoints":                               readAll,
	"GET /v1/endpoints/{id}":                          tenants(read),
	"PUT /v1/endpoints/{id}":                          tenants(manage).with(`{"url":"https://example.com/"}`),
	"PATCH /v1/endpoints/{id}":                        tenants(manage),
	"DELETE /v1/endpoints/{id}":                       tenants(manage),
	"POST /v1/endpoints/{id}/pause":                   tenants(manage),
	"POST /v1/endpoints/{id}/resume":                  tenants(manage),
	"GET /v1/endpoints/{id}/stats":                    tenants(read),
	"POST /v1/endpoints/{id}/rotate-secret":           tenants(manage),
	"GET /v1/endpoints/{id}/secrets":                  tenants(read),
	"POST /v1/endpoints/{id}/secrets/{secret}/revoke": tenants(manage),
	"POST /v1/endpoints/{id}/test":                    tenants(manage),
	"POST /v1/endpoints/{id}/probe":                   tenants(manage),
	"POST /v1/endpoints/{id}/explain":                 tenants(read),

	"GET /v1/deliveries":              tenants(read),
	"GET /v1/deliveries/{id}":         tenants(read),
	"POST /v1/deliveries/{id}/retry":  tenants(manage),
	"POST /v1/deliveries/{id}/cancel": tenants(manage),
	"POST /v1/deliveries/retry":       tenants(manage),
	"POST /v1/deliveries/cancel":      tenants(manage),
	"GET /v1/attempts/stream":         tenants(read),

	"GET /v1/dead-letters":              tenants(read),
	"GET /v1/dead-letters/export":       tenants(read),
	"GET /v1/dead-letters/groups":       tenants(read),
	"GET /v1/dead-letters/{id}":         tenants(read),
	"POST /v1/dead-letters/{id}/replay": tenants(manage),
	"POST /v1/dead-letters/replay":      tenants(manage),
	"POST /v1/dead-letters/purge":       tenants(manage),

	"GET /v1/notices":                   tenants(read),
	"POST /v1/notices/{id}/acknowledge": tenants(manage),

	"POST /v1/sources":                      tenants(manage),
	"GET /v1/sources":                       readAll,
	"GET /v1/sources/{id}":                  tenants(read),
	"PUT /v1/sources/{id}":                  tenants(manage).with(`{"scheme":"github"}`),
	"PATCH /v1/sources/{id}":                tenants(manage),
	"DELETE /v1/sources/{id}":               tenants(manage),
	"POST /v1/sources/{id}/pause":           tenants(manage),
	"POST /v1/sources/{id}/resume":          tenants(manage),
	"POST /v1/sources/{id}/rotate":          tenants(manage),
	"POST /v1/sources/{id}/acknowledgments": tenants(manage).with(`{"by":"a","version":"b"}`),
	"GET /v1/sources/{id}/acknowledgments":  tenants(read),
	"GET /v1/sources/{id}/rejections":       tenants(read),

	"POST /v1/keys":        writeKeys,
	"GET /v1/keys":         readKeys,
	"GET /v1/keys/{id}":    readKeys,
	"DELETE /v1/keys/{id}": writeKeys,

	"POST /v1/sessions":           everyone,
	"GET /v1/sessions":            readKeys,
	"GET /v1/sessions/current":    anyKey,
	"DELETE /v1/sessions/current": anyKey,
	"GET /v1/sessions/{id}":       readKeys,
	"DELETE /v1/sessions/{id}":    writeKeys,
	"DELETE /v1/sessions":         writeKeys,
	"POST /v1/sign-in-links":      anyKey.keyOnly(),

	"POST /v1/tenants":        writeTenants,
	"GET /v1/tenants":         readTenants,
	"GET /v1/tenants/{id}":    readTenants,
	"PUT /v1/tenants/{id}":    writeTenants.with(`{"name":"a"}`),
	"PATCH /v1/tenants/{id}":  writeTenants,
	"DELETE /v1/tenants/{id}": writeTenants,

	"POST /v1/environments":        administration,
	"GET /v1/environments":         readTenants,
	"GET /v1/environments/{id}":    readTenants,
	"PUT /v1/environments/{id}":    administration.with(`{"name":"a"}`),
	"PATCH /v1/environments/{id}":  administration,
	"DELETE /v1/environments/{id}": administration,

	"GET /v1/environments/{id}/signing-keys":               readTenants,
	"POST /v1/environments/{id}/signing-keys":              writeTenants,
	"POST /v1/environments/{id}/signing-keys/{key}/revoke": writeTenants,

	"GET /v1/portal": readAll,

	"POST /v1/portal-links":        {tenant: []godwit.Scope{manage}, environment: []godwit.Scope{manage, admin}},
	"GET /v1/portal-links":         tenants(read),
	"GET /v1/portal-links/{id}":    tenants(read),
	"DELETE /v1/portal-links/{id}": tenants(manage),

	"GET /v1/usage":       readAll,
	"GET /v1/usage/total": readAll,

	"GET /v1/stats":          readAll,
	"GET /v1/stats/failures": readAll,
	"GET /v1/stats/waiting":  readAll,

	"GET /v1/nodes":    administration,
	"GET /v1/settings": administration,

	"POST /ojs/v1/webhooks/subscriptions":                    tenants(manage),
	"GET /ojs/v1/webhooks/subscriptions":                     tenants(read),
	"GET /ojs/v1/webhooks/subscriptions/{id}":                tenants(read),
	"PATCH /ojs/v1/webhooks/subscriptions/{id}":              tenants(manage),
	"PUT /ojs/v1/webhooks/subscriptions/{id}":                tenants(manage),
	"DELETE /ojs/v1/webhooks/subscriptions/{id}":             tenants(manage),
	"POST /ojs/v1/webhooks/subscriptions/{id}/test":          tenants(manage),
	"POST /ojs/v1/webhooks/subscriptions/{id}/rotate-secret": tenants(manage),
	"GET /ojs/v1/webhooks/deliveries":                        tenants(read),
	"GET /ojs/v1/webhooks/deliveries/{id}":                   tenants(read),
	"POST /ojs/v1/webhooks/deliveries/{id}/retry":            tenants(manage),
	"GET /ojs/v1/events":                                     tenants(read),
	"POST /ojs/v1/events":                                    tenants(ingest),
	"POST /ojs/v1/events/batch":                              tenants(ingest),
	"GET /ojs/manifest":                                      everyone,
	"GET /ojs/v1/manifest":                                   everyone,

	"POST /api/v1/webhooks/endpoints":                    tenants(manage),
	"GET /api/v1/webhooks/endpoints":                     tenants(read),
	"GET /api/v1/webhooks/endpoints/{id}":                tenants(read),
	"PATCH /api/v1/webhooks/endpoints/{id}":              tenants(manage),
	"DELETE /api/v1/webhooks/endpoints/{id}":             tenants(manage),
	"POST /api/v1/webhooks/endpoints/{id}/rotate-secret": tenants(manage),
	"POST /api/v1/webhooks/endpoints/{id}/test":          tenants(manage),
	"GET /api/v1/webhooks/endpoints/{id}/failures":       tenants(read),
	"GET /api/v1/webhooks/endpoints/{id}/logs":           tenants(read),
	"POST /api/v1/webhooks/events":                       tenants(ingest),
	"POST /api/v1/webhooks/events/{id}/replay":           tenants(manage).with(`{"endpoint_id":"{endpoint}"}`),
	"POST /api/v1/webhooks/replay":                       tenants(manage),

	"POST /ids/v1/commands":              commands,
	"POST /ids/v1/commands/{id}/confirm": ofCommands.with(`{"confirmation_token":"cft_x"}`),
	"POST /ids/v1/commands/{id}/step-up": ofCommands,
	"GET /ids/v1/commands/{id}":          ofCommands,
	"GET /ids/v1/registry":               ofCommands,
	"GET /ids/v1/evidence":               ofEvidence,
	"GET /ids/v1/evidence/export":        ofEvidence,
	"GET /ids/v1/evidence/key":           ofCommands,

	"GET /in/{source}":  ownSecret,
	"POST /in/{source}": ownSecret,

	"GET /ui/{path...}":       everyone, // files alone; the pages ask the API
	"GET /ui/oidc/start":      everyone, // the identity provider decides
	"GET /ui/oidc/callback":   everyone,
	"GET /ui/oidc/choose":     everyone,
	"POST /ui/oidc/choose":    everyone,
	"GET /ui/oidc/sign-out":   everyone,
	"GET /v1/sign-in-methods": everyone,
	"GET /portal/{path...}":   everyone,
	"GET /portal/embed.js":    everyone,

	"GET /openapi.json": everyone,
	"GET /healthz":      everyone,
	"GET /readyz":       everyone,
	"GET /metrics":      tenants(metrics, admin),

	"GET /docs/idempotency":                              everyone,
	"GET /docs/problems":                                 everyone,
	"GET /.well-known/webhook-ips":                       everyone,
	"GET /.well-known/webhook-service":                   everyone,
	"GET /.well-known/http-message-signatures-directory": everyone,
}
