package cybercube

import (
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// The scopes of the operations.
var (
	mayIngest = []godwit.Scope{godwit.ScopeIngest}
	mayRead   = []godwit.Scope{godwit.ScopeRead}
	mayManage = []godwit.Scope{godwit.ScopeManage}
)

// routes is the map of the API: for each route who may use it, under which hourly limit, and which handler serves it.
func routes(cfg *Config, api *httpapi.API, h *handlers, limits *budgets) httpapi.Router {
	read := httpapi.Route{Access: httpapi.Access{Need: mayRead}}
	manage := httpapi.Route{Access: httpapi.Access{Need: mayManage}}
	ingest := httpapi.Route{Access: httpapi.Access{Need: mayIngest}, Limit: cfg.Intake.MaxPayload() + envelopeRoom, OwnKey: true}
	limited := func(b *budget) httpapi.Route {
		return httpapi.Route{Access: httpapi.Access{Need: mayManage}, Enter: b.enter}
	}

	mux := httpapi.NewMux()
	route := func(pattern string, r httpapi.Route, serve func(*httpapi.Call) error) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" "+Prefix+path, api.Handle(r, serve))
	}
	route("POST endpoints", limited(limits.create), h.endpoints.create)
	route("GET endpoints", read, h.endpoints.list)
	route("GET endpoints/{id}", read, h.endpoints.get)
	route("PATCH endpoints/{id}", limited(limits.update), h.endpoints.update)
	route("DELETE endpoints/{id}", limited(limits.remove), h.endpoints.delete)
	route("POST endpoints/{id}/rotate-secret", manage, h.secrets.rotate)
	route("POST endpoints/{id}/test", limited(limits.test), h.trials.test)
	route("GET endpoints/{id}/failures", read, h.failures.list)
	route("GET endpoints/{id}/logs", read, h.logs.list)
	route("POST events", ingest, h.events.post)
	route("POST events/{id}/replay", limited(limits.replay), h.replays.event)
	route("POST replay", limited(limits.replay), h.replays.period)
	mux.Unmatched("/", cfg.Errors, "")
	return mux
}
