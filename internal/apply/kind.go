package apply

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/godwit-hq/godwit/spec"
)

// A Kind is a kind of object.
type Kind struct {
	noun    string // singular, for people
	section string // in files
	path    string // of the collection in the API
	schema  string // of the PUT document in the OpenAPI document
	own     string // member that holds the object's own id
	// creation are members that count only when the object is created. They are not compared.
	creation []string
	// stays are members that keep their value if they are absent.
	stays []string
	// folded are lists of names whose case does not count; the server writes them in its own way.
	folded []string
	// precision says how the inner members of a member are compared. Defaults to loose.
	precision map[string]precision
	// defaults are the values of members that are absent, where these are not empty.
	defaults map[string]any
}

// The kinds, in the order in which they are written.
var (
	environments = &Kind{noun: "environment", section: "environments", path: "environments", schema: "EnvironmentDocument", own: "uid", precision: map[string]precision{"endpoint_policy": settings, "theme": settings}, defaults: map[string]any{"endpoint_signing": ownSigning}}
	eventTypes   = &Kind{
		noun: "event type", section: "event_types", path: "event-types", schema: "EventTypeDraft", own: "name",
		stays: []string{"schema", "compatibility"}, precision: map[string]precision{"schema": exact, "example": exact},
	}
	tenants   = &Kind{noun: "tenant", section: "tenants", path: "tenants", schema: "NewTenant", own: "uid"}
	endpoints = &Kind{
		noun: "endpoint", section: "endpoints", path: "endpoints", schema: "NewEndpoint", own: "uid",
		creation: []string{"algorithm", "secret", "paused"}, precision: map[string]precision{"policy": settings, "metadata": settings, "content_filter": exact},
		defaults: map[string]any{"method": "POST", "patterns": []any{"*"}, "profile": defaultProfile, "signing": ownSigning},
	}
	sources = &Kind{
		noun: "source", section: "sources", path: "sources", schema: "SourceDraft", own: "name",
		creation: []string{"credentials"}, folded: []string{"keep_headers"}, defaults: map[string]any{"mode": "store-and-forward"},
	}
)

// defaultProfile is the profile of endpoints where neither they nor their environment name one.
const defaultProfile = "eds"

// ownSigning is the signer of endpoints where neither they nor their environment name one.
const ownSigning = "own"

// sealed are the members of endpoints that the API never shows. The server compares them when they are put.
var sealed = []string{"headers", "auth"}

// document is the OpenAPI document.
var document = sync.OnceValue(func() map[string]any {
	var doc map[string]any
	if err := json.Unmarshal(spec.OpenAPI, &doc); err != nil {
		panic("spec/openapi.json is not JSON") // a test reads it
	}
	return doc
})

// component returns a schema of the OpenAPI document.
func component(name string) map[string]any {
	found, _ := document()["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
	return found
}

// members lists the members of the PUT document that are compared, sorted.
func (k *Kind) members() []string {
	properties, _ := component(k.schema)["properties"].(map[string]any)
	var names []string
	for name := range properties {
		if name != k.own && !slices.Contains(k.creation, name) && !(k == endpoints && slices.Contains(sealed, name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// inheritable lists the settings of a tenant that its environment lends.
var inheritable = sync.OnceValue(func() []string {
	properties, _ := component("Tenant")["properties"].(map[string]any)
	inherits, _ := properties["inherits"].(map[string]any)
	items, _ := inherits["items"].(map[string]any)
	values, _ := items["enum"].([]any)
	names := make([]string, 0, len(values))
	for _, v := range values {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
})
