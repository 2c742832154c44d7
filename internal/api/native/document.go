package native

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// serveDocument serves the OpenAPI document. The first request renders it: that takes as long as a tenth of the server's start.
func (r *router) serveDocument() {
	r.document = sync.OnceValues(r.renderDocument)
	r.patterns["GET /openapi.json"] = anyone
	r.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, req *http.Request) {
		document, err := r.document()
		if err != nil {
			r.problems.Write(w, req, err)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		w.Header().Set("Cache-Control", "no-cache")
		w.Write(document)
	})
}

// renderDocument renders the OpenAPI document of all routes.
func (r *router) renderDocument() ([]byte, error) {
	raw, err := json.Marshal(r.api.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("render OpenAPI document: %w", err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	completeSchemas(doc)
	describeMembers(doc)
	describeOperations(doc)
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render OpenAPI document: %w", err)
	}
	return append(text, '\n'), nil
}

// completeSchemas writes null in the form that client generators read: a member that may be null refers to its schema or to
// null, and an enumeration lists null among its values.
func completeSchemas(doc map[string]any) {
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	nullable := map[string]bool{}
	for name, schema := range schemas {
		if m := schema.(map[string]any); dropNull(m) {
			nullable["#/components/schemas/"+name] = true
		}
	}
	eachObject(doc, func(m map[string]any) {
		if ref, ok := m["$ref"].(string); ok && nullable[ref] {
			delete(m, "$ref")
			m["anyOf"] = []any{map[string]any{"$ref": ref}, map[string]any{"type": "null"}}
		}
		values, listed := m["enum"].([]any)
		if types, ok := m["type"].([]any); ok && listed && slices.Contains(types, any("null")) && !slices.Contains(values, nil) {
			m["enum"] = append(values, nil)
		}
	})
}

// dropNull removes null from a schema's types and reports whether it was there.
func dropNull(schema map[string]any) bool {
	types, ok := schema["type"].([]any)
	if !ok {
		return false
	}
	rest := slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" })
	if len(rest) == 1 {
		schema["type"] = rest[0]
	}
	return len(rest) < len(types)
}

// eachObject calls f for every object of a JSON document, inner objects first. It does not visit objects that f adds.
func eachObject(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			eachObject(member, f)
		}
		f(v)
	case []any:
		for _, item := range v {
			eachObject(item, f)
		}
	}
}
