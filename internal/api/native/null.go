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
func (s *server) keepBodySchema(method, path string) {
	item := s.api.OpenAPI().Paths[path]
	op := map[string]*huma.Operation{http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch}[method]
	if op == nil || op.RequestBody == nil {
		return
	}
	for _, media := range op.RequestBody.Content {
		s.bodySchemas[method+" "+path] = media.Schema
	}
}

// refuseNull rejects a null member if the OpenAPI document does not allow null. huma treats such a member as absent, so a
// filter of null would become no filter.
func (s *server) refuseNull(pattern string, body []byte) error {
	schema := s.bodySchemas[pattern]
	if schema == nil || len(body) == 0 {
		return nil
	}
	var document any
	if json.Unmarshal(body, &document) != nil {
		return nil // huma rejects invalid JSON
	}
	if at := nullMember(s.api.OpenAPI().Components.Schemas, schema, "", document); at != "" {
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

// checkQuery rejects empty and repeated parameters. huma would ignore an empty one and use one of the repeated ones, and the
// filter would not be the one that the client meant.
func checkQuery(r *http.Request) error {
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch values := query[name]; {
		case len(values) > 1:
			return problem.InvalidRequest.In(name, "must be given once")
		case values[0] == "" && name != "cursor": // an empty cursor means the first page
			return problem.InvalidRequest.In(name, "must not be empty; leave the parameter out")
		}
	}
	return nil
}
