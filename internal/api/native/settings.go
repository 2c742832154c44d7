package native

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/search"
)

// Settings are the configuration that a node runs with.
type Settings struct {
	Version   string        `json:"version" doc:"Version of the program"`
	Revision  string        `json:"revision,omitempty" doc:"Revision of its source"`
	Go        string        `json:"go" doc:"Version of Go that built it"`
	Node      string        `json:"node" doc:"Name of the node that answered"`
	StartedAt time.Time     `json:"started_at"`
	Store     StoreSettings `json:"store"`
	Options   []Option      `json:"options" doc:"Every setting, in the order of the reference page"`
	Limits    []FixedLimit  `json:"limits" doc:"Bounds that no setting changes"`
}

// StoreSettings describe the database.
type StoreSettings struct {
	Backend    string `json:"backend" enum:"sqlite,postgres"`
	Version    string `json:"version"`
	Schema     int    `json:"schema" doc:"Version of the schema"`
	Location   string `json:"location" doc:"Path, or host and database"`
	Durability string `json:"durability" doc:"What an acknowledgement guarantees"`
}

// Option is a setting with its value.
type Option struct {
	Name        string `json:"name" doc:"The flag, without dashes" example:"listen"`
	Value       string `json:"value" doc:"A secret is not shown: (set), or a URL without its password"`
	Default     string `json:"default"`
	Origin      string `json:"origin" doc:"Where the value came from: default, flag, environment with the variable, file with the line, or program" example:"environment GODWIT_LISTEN"`
	Description string `json:"description"`
	Group       string `json:"group" example:"Retention"`
	Variable    string `json:"variable" doc:"Its environment variable" example:"GODWIT_LISTEN"`
	Key         string `json:"key" doc:"Its place in a configuration file" example:"retention.events"`
	Secret      bool   `json:"secret" doc:"It holds a secret, or may"`
}

// FixedLimit is a bound that no setting changes.
type FixedLimit struct {
	Name        string `json:"name"`
	Value       int64  `json:"value"`
	Unit        string `json:"unit,omitempty" enum:"bytes,seconds"`
	Description string `json:"description"`
}

type settingsOutput struct{ Body Settings }

var getSettingsDoc = huma.Operation{
	OperationID: "get-settings", Summary: "Get the configuration of the node that answers",
	Description: "Every setting with its value, its default and where the value came from; versions; bounds. Secrets are never shown.",
}

// settingsHandlers show the configuration.
type settingsHandlers struct {
	read func(ctx context.Context) (*Settings, error)
}

func (h *settingsHandlers) get(ctx context.Context, _ *management.Caller, _ *struct{}) (*settingsOutput, error) {
	s, err := h.read(ctx)
	if err != nil {
		return nil, err
	}
	s.Limits = fixedLimits
	return &settingsOutput{Body: *s}, nil
}

var fixedLimits = []FixedLimit{
	{"events-per-batch", godwit.MaxEventsPerBatch, "", "Events in one batch"},
	{"event-type-length", godwit.MaxEventType, "", "Characters of an event type"},
	{"attributes", godwit.MaxAttributes, "", "Attributes of an event"},
	{"attribute-name-length", godwit.MaxAttributeName, "", "Characters of an attribute's name"},
	{"attribute-value-length", godwit.MaxAttributeValue, "", "Characters of an attribute's value"},
	{"broadcast-names", godwit.MaxBroadcastNames, "", "Tenants that a broadcast may name"},
	{"management-body", httpapi.MaxManagementBody, "bytes", "Body of a request that posts no event"},
	{"page", 200, "", "Items on a page of a list"},
	{"streams-per-tenant", maxStreams, "", "Live streams of a tenant at once"},
	{"streams", maxStreamsOfAll, "", "Live streams of all tenants at once"},
	{"exports-per-tenant", maxExports, "", "Exports of a tenant at once"},
	{"exports", maxExportsOfAll, "", "Exports of all tenants at once"},
	{"searches-per-tenant", maxSearches, "", "Searches of a tenant at once"},
	{"searches", maxSearchesOfAll, "", "Searches of all tenants at once"},
	{"search-events", search.MaxRows, "", "Events that one search examines"},
	{"search-payload", search.MaxBytes, "bytes", "Payload that one search examines"},
	{"bulk-preview", previewed, "", "Deliveries that a preview of a bulk operation counts"},
}
