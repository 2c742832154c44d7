package native

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/problem"
)

// keepBodySchema stores the schema of an operation's body for refuseNull.
func (r *router) keepBodySchema(method, path string) {
	item := r.api.OpenAPI().Paths[path]
	op := map[string]*huma.Operation{http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch}[method]
	if op == nil || op.RequestBody == nil {
		return
	}
	for _, media := range op.RequestBody.Content {
		r.bodySchemas[method+" "+path] = media.Schema
	}
}

// refuseNull rejects a null member if the OpenAPI document does not allow null. huma treats such a member as absent, so a
// filter of null would become no filter.
func (r *router) refuseNull(pattern string, body []byte) error {
	schema := r.bodySchemas[pattern]
	if schema == nil || len(body) == 0 {
		return nil
	}
	var document any
	if json.Unmarshal(body, &document) != nil {
		return nil // huma rejects invalid JSON
	}
	if at := nullMember(r.api.OpenAPI().Components.Schemas, schema, "", document); at != "" {
		return problem.InvalidRequest.In(at, "must not be null; leave the member out")
	}
	return nil
}

// nullMember returns the path of the first member that is null although the schema does not allow it, or "".
func nullMember(registry huma.Registry, schema *huma.Schema, at string, v any) string {
	for schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			member := schema.Properties[name]
			if member == nil {
				continue // an unknown member or a member of a map; huma checks both
			}
			path := name
			if at != "" {
				path = at + "." + name
			}
			if v[name] == nil {
				if !allowsNull(registry, member) {
					return path
				}
				continue
			}
			if found := nullMember(registry, member, path, v[name]); found != "" {
				return found
			}
		}
	case []any:
		if schema.Items == nil {
			return ""
		}
		for _, item := range v {
			if found := nullMember(registry, schema.Items, at, item); found != "" {
				return found
			}
		}
	}
	return ""
}

// allowsNull reports whether the schema allows null. A schema without a type allows any JSON.
func allowsNull(registry huma.Registry, schema *huma.Schema) bool {
	for schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	return schema.Nullable || schema.Type == ""
}
