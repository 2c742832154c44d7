// Command kubeschema turns the OpenAPI document of Kubernetes into JSON Schemas for kubeconform, so that manifests are checked
// without a download from anywhere but Go's module proxy.
//
//	kubeschema -openapi swagger.json -output DIRECTORY
//
// The document is api/openapi-spec/swagger.json of the module k8s.io/kubernetes. The schemas are strict: a field that
// Kubernetes does not know is an error.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	openapi := flag.String("openapi", "", "OpenAPI document of Kubernetes")
	output := flag.String("output", "", "directory that the schemas are written to")
	flag.Parse()
	if err := convert(*openapi, *output); err != nil {
		fmt.Fprintln(os.Stderr, "kubeschema:", err)
		os.Exit(1)
	}
}

type schema = map[string]any

func convert(openapi, output string) error {
	text, err := os.ReadFile(openapi)
	if err != nil {
		return err
	}
	var document struct{ Definitions map[string]schema }
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return err
	}
	for name, definition := range document.Definitions {
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			if err := writeKind(output, name, k.(schema), document.Definitions); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeKind writes the schema of one kind with all definitions that it refers to.
func writeKind(output, name string, kind schema, all map[string]schema) error {
	group, _, _ := strings.Cut(kind["group"].(string), ".")
	parts := []string{strings.ToLower(kind["kind"].(string)), group, kind["version"].(string)}
	if group == "" {
		parts = []string{parts[0], parts[2]}
	}
	needed := schema{}
	collect(name, all, needed)
	text, err := json.Marshal(schema{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/" + name, "definitions": needed})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(output, strings.Join(parts, "-")+".json"), text, 0o644)
}

func collect(name string, all map[string]schema, needed schema) {
	if needed[name] != nil {
		return
	}
	switch name {
	case "io.k8s.apimachinery.pkg.util.intstr.IntOrString", "io.k8s.apimachinery.pkg.api.resource.Quantity":
		// OpenAPI 2 cannot say that these are numbers too.
		needed[name] = schema{"type": []string{"string", "number"}}
		return
	}
	strict := schema{}
	needed[name] = strict
	for k, v := range all[name] {
		strict[k] = v
	}
	delete(strict, "description")
	if strict["properties"] != nil {
		strict["additionalProperties"] = false
	}
	for _, ref := range references(strict) {
		collect(ref, all, needed)
	}
}

// references returns the names of the definitions that a schema refers to.
func references(v any) (names []string) {
	switch v := v.(type) {
	case schema:
		for key, member := range v {
			if ref, is := member.(string); is && key == "$ref" {
				names = append(names, strings.TrimPrefix(ref, "#/definitions/"))
			}
			names = append(names, references(member)...)
		}
	case []any:
		for _, member := range v {
			names = append(names, references(member)...)
		}
	}
	return names
}
