package native

import (
	"maps"
	"net/http"
	"regexp"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/idempotency"
)

// The OpenAPI document states rules that huma does not check. Package management and the handlers enforce them, with better
// messages than a schema gives. Contract tests compare the responses with the document.

const uuidPattern = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// ownID finds the prefix of an id in a member's example.
var ownID = regexp.MustCompile(`^([a-z]{3})_` + uuidPattern + `$`)

// memberRules are rules of single members, by schema and member.
var memberRules = map[string]map[string]any{
	"NewSource.scheme":              {"enum": schemes},
	"Source.scheme":                 {"enum": schemes},
	"IssuedSource.scheme":           {"enum": schemes},
	"NewEndpoint.profile":           {"enum": profiles},
	"Endpoint.profile":              {"enum": profiles},
	"IssuedEndpoint.profile":        {"enum": profiles},
	"NewEndpoint.url":               {"minLength": 1, "format": "uri"},
	"NewEndpoint.patterns":          {"minItems": 1},
	"NewEndpoint.secret":            {"minLength": 1},
	"NewSource.name":                {"minLength": 1, "pattern": `^[A-Za-z0-9._-]+$`},
	"NewKey.name":                   {"minLength": 1},
	"NewKey.scopes":                 {"minItems": 1},
	"NewTenant.name":                {"minLength": 1},
	"NewEnvironment.name":           {"minLength": 1},
	"NewEnvironment.uid":            {"minLength": 1},
	"EventEnvelope.type":            {"minLength": 1},
	"EventEnvelope.idempotency_key": {"minLength": 1, "maxLength": 255, "pattern": `^[ -~]+$`},
}

var (
	schemes  = []any{"eds", "ojs", "cybercube", "standard-webhooks", "github", "stripe", "shopify", "slack", "twilio", "paypal", "bearer", "basic", "mtls"}
	profiles = []any{"eds", "ojs", "cybercube", "standard-webhooks"}
)

// describeMembers adds the rules of members, and the patterns of ids.
func describeMembers(doc map[string]any) {
	for name, schema := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		properties, _ := schema.(map[string]any)["properties"].(map[string]any)
		for member, property := range properties {
			p := property.(map[string]any)
			maps.Copy(p, memberRules[name+"."+member])
			if examples, ok := p["examples"].([]any); ok && p["type"] == "string" && len(examples) == 1 {
				if text, _ := examples[0].(string); ownID.MatchString(text) {
					p["pattern"] = "^" + text[:4] + uuidPattern + "$"
				}
			}
		}
	}
}

// failureStatuses returns the error statuses of an operation, beside those that it declares itself.
func failureStatuses(method string) []int {
	list := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound /* also of a tenant */, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable}
	switch method {
	case "get":
		list = append(list, http.StatusUnprocessableEntity) // a filter names an endpoint that does not exist
	case "post", "patch", "put":
		list = append(list, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	case "delete":
		list = append(list, http.StatusConflict, http.StatusGone)
	}
	return list
}

const problemRef = "#/components/responses/Problem"

// describeOperations adds the error responses of each operation, and their schemas.
func describeOperations(doc map[string]any) {
	failure := map[string]any{}
	for _, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			operation := op.(map[string]any)
			responses := operation["responses"].(map[string]any)
			if given, ok := responses["default"].(map[string]any); ok && len(failure) == 0 {
				failure = given
			}
			for _, status := range failureStatuses(method) {
				if code := statusCode(status); responses[code] == nil {
					responses[code] = map[string]any{"$ref": problemRef}
				}
			}
			responses["default"] = map[string]any{"$ref": problemRef}
			describeParameters(operation)
			if operation["operationId"] == "post-event" {
				describeTenants(operation)
			}
		}
	}
	doc["components"].(map[string]any)["responses"] = map[string]any{"Problem": failure}
	doc["servers"] = []any{map[string]any{"url": "/", "description": "The server that serves this document"}}
}

func statusCode(status int) string {
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}

// tenantPattern is the form of a tenant's or environment's id or uid.
const tenantPattern = "[A-Za-z0-9][A-Za-z0-9._:-]{0,99}"

// describeTenants says that an operation takes several tenants.
func describeTenants(operation map[string]any) {
	parameters, _ := operation["parameters"].([]any)
	for _, p := range parameters {
		if parameter := p.(map[string]any); parameter["name"] == httpapi.TenantHeader {
			parameter["schema"].(map[string]any)["pattern"] = `^(\*|` + tenantPattern + `( *, *` + tenantPattern + `)*)$`
			parameter["description"] = "Id or uid of the tenant to act for; or several, with a comma between them; or * for all tenants of the environment that have an endpoint for the event. Needs the scope admin, or a key of the tenants' environment. Absent: the API key's own."
		}
	}
}

func describeParameters(operation map[string]any) {
	parameters, _ := operation["parameters"].([]any)
	for _, p := range parameters {
		parameter := p.(map[string]any)
		schema, _ := parameter["schema"].(map[string]any)
		if schema == nil || schema["type"] != "string" {
			continue
		}
		switch parameter["name"] {
		case httpapi.TenantHeader, httpapi.EnvironmentHeader:
			schema["pattern"] = "^" + tenantPattern + "$" // an id is of this form too
		case idempotency.Header:
			schema["pattern"] = `^"([ !#-\[\]-~]|\\["\\])+"$`
		default:
			if in := parameter["in"]; (in == "path" || in == "query") && parameter["name"] != "attr.NAME" && parameter["name"] != "cursor" {
				schema["minLength"] = 1 // an empty parameter is rejected
			}
		}
	}
}
