package native

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema/compat"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// EventType describes the meaning and the schema of an event type.
type EventType struct {
	Name        string          `json:"name" example:"order.created"`
	Description string          `json:"description"`
	Deprecated  bool            `json:"deprecated"`
	Standard    string          `json:"standard,omitempty" enum:"ojs,cybercube" doc:"The standard that it is built in from; absent on others"`
	Shared      bool            `json:"shared" doc:"All tenants of the environment have it"`
	Version     int             `json:"version,omitempty" doc:"Of the schema in force"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"JSON Schema (draft 2020-12) in force: of the payload, or of the whole event where it is a standard's"`
	// Compatibility is absent where nothing is declared.
	Compatibility string          `json:"compatibility,omitempty" enum:"none,backward,forward,full" doc:"What the next version of the schema must keep to"`
	Example       json.RawMessage `json:"example,omitempty"`
	CreatedAt     *time.Time      `json:"created_at,omitempty"`
	UpdatedAt     *time.Time      `json:"updated_at,omitempty"`
}

// EventTypeDetail is a type with every version of its schema.
type EventTypeDetail struct {
	EventType
	Versions []SchemaVersion `json:"versions" doc:"First to last; the last is in force"`
}

// SchemaVersion is one version of a type's schema.
type SchemaVersion struct {
	Version   int             `json:"version"`
	Schema    json.RawMessage `json:"schema"`
	CreatedAt *time.Time      `json:"created_at,omitempty"`
}

func eventTypeView(c *management.Caller, t *godwit.EventType, standard string) EventType {
	v := EventType{
		Name: t.Name, Description: t.Description, Deprecated: t.Deprecated, Standard: standard, Example: t.Example,
		Shared:    t.TenantID == godwit.HomeOf(c.Tenant.EnvironmentID),
		CreatedAt: timestamp(t.CreatedAt), UpdatedAt: timestamp(t.UpdatedAt),
	}
	if n := len(t.Schemas); n > 0 {
		last := &t.Schemas[n-1]
		v.Version, v.Schema, v.Compatibility = last.Version, last.Schema, last.Compatibility
	}
	return v
}

func eventTypeShown(c *management.Caller, t *godwit.EventType, standard string) *eventTypeOutput {
	out := &eventTypeOutput{ETag: etag(t.Version), Body: EventTypeDetail{EventType: eventTypeView(c, t, standard), Versions: []SchemaVersion{}}}
	for _, s := range t.Schemas {
		out.Body.Versions = append(out.Body.Versions, SchemaVersion{Version: s.Version, Schema: s.Schema, CreatedAt: timestamp(s.CreatedAt)})
	}
	return out
}

type (
	eventTypePath struct {
		Name string `path:"name" doc:"The type" example:"order.created"`
	}
	listEventTypesInput struct {
		Standard string `query:"standard" enum:"ojs,cybercube" doc:"Those that are built in from this standard, instead of the tenant's own"`
		Limit    int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many items at most"`
		Cursor   string `query:"cursor" maxLength:"256" doc:"next_cursor of the page before"`
	}
	putEventTypeInput struct {
		Name  string `path:"name" doc:"The type" example:"order.created"`
		Force bool   `query:"force" doc:"Store the schema although it is not compatible with the one in force"`
		MatchParams
		Body struct {
			Description   string          `json:"description,omitempty"`
			Deprecated    bool            `json:"deprecated,omitempty" doc:"Producers should use another type. Nothing is refused for it."`
			Schema        json.RawMessage `json:"schema,omitempty" doc:"JSON Schema (draft 2020-12) of the payload. format is checked; nothing outside is fetched. Absent: the one in force stays."`
			Example       json.RawMessage `json:"example,omitempty" doc:"A payload that fits the schema"`
			Compatibility string          `json:"compatibility,omitempty" enum:"none,backward,forward,full" doc:"What later versions of the schema must keep to. backward: events of this version are valid by the next. forward: events of the next are valid by this one, so that receivers written for it go on working. full: both. Members that a schema does not name are not compared. Absent: what is declared stays."`
		} `nameHint:"EventTypeDraft"`
	}
	eventTypeOutput struct {
		ETag string `header:"ETag"`
		Body EventTypeDetail
	}
)

// Descriptions of the operations on event types.
var (
	listEventTypesDoc = huma.Operation{
		OperationID: "list-event-types", Summary: "List event types",
		Description: "By name: the tenant's own and those that its environment shares. The catalogue says what events mean and look like; whether they are held against it is the tenant's setting event_validation.",
	}
	getEventTypeDoc = huma.Operation{
		OperationID: "get-event-type", Summary: "Get an event type",
		Description: "The tenant's own, or the one that its environment shares, or else the one of a standard.",
	}
	putEventTypeDoc = huma.Operation{
		OperationID: "put-event-type", Summary: "Write an event type",
		Description: "Description, deprecated and example are replaced. A schema that differs from the one in force becomes the next version; earlier ones are kept. If the version in force declares a compatibility and the next does not keep to it, it is refused with the places, unless force is set. A request for an environment writes a type that all its tenants share.",
	}
	deleteEventTypeDoc = huma.Operation{
		OperationID: "delete-event-type",
		Summary:     "Delete an event type", DefaultStatus: http.StatusNoContent, Description: "With all versions of its schema. Events stay.",
	}
)

// eventTypeHandlers serve the operations on event types.
type eventTypeHandlers struct {
	catalogue interface {
		List(ctx context.Context, t *godwit.Tenant, after string, limit int) ([]godwit.EventType, error)
		Get(ctx context.Context, t *godwit.Tenant, name string) (*godwit.EventType, error)
		Put(ctx context.Context, tenant godwit.TenantID, name string, d catalogue.Draft, m godwit.Match) (*godwit.EventType, bool, error)
		Delete(ctx context.Context, tenant godwit.TenantID, name string, m godwit.Match) error
	}
}

func (h *eventTypeHandlers) list(ctx context.Context, c *management.Caller, in *listEventTypesInput) (*listOutput[EventType], error) {
	after, err := parseNameCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	types, err := h.after(ctx, c, in.Standard, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &listOutput[EventType]{Body: list[EventType]{Items: []EventType{}}}
	for i := range types {
		if i == in.Limit {
			out.Body.NextCursor = nameCursor(types[i-1].Name)
			break
		}
		out.Body.Items = append(out.Body.Items, eventTypeView(c, &types[i], in.Standard))
	}
	return out, nil
}

// after lists the types that follow a name, of a standard or of the tenant.
func (h *eventTypeHandlers) after(ctx context.Context, c *management.Caller, standard, after string, limit int) ([]godwit.EventType, error) {
	built, ok := catalogue.StandardNamed(standard)
	if !ok {
		return h.catalogue.List(ctx, c.Tenant, after, limit)
	}
	types := slices.SortedFunc(slices.Values(built.Types()), func(a, b godwit.EventType) int { return strings.Compare(a.Name, b.Name) })
	from, _ := slices.BinarySearchFunc(types, after+"\x00", func(t godwit.EventType, name string) int { return strings.Compare(t.Name, name) })
	return types[from:min(len(types), from+limit)], nil
}

const listTypes listKind = 'c'

// nameCursor is a cursor for lists that are sorted by name.
func nameCursor(name string) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{cursorVersion, byte(listTypes)}, name...))
}

func parseNameCursor(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 3 || b[0] != cursorVersion || b[1] != byte(listTypes) || godwit.ValidEventType(string(b[2:])) != "" {
		return "", problem.InvalidRequest.In("cursor", "is not a next_cursor of this list")
	}
	return string(b[2:]), nil
}

func (h *eventTypeHandlers) get(ctx context.Context, c *management.Caller, in *eventTypePath) (*eventTypeOutput, error) {
	own, err := h.catalogue.Get(ctx, c.Tenant, in.Name)
	if err == nil {
		return eventTypeShown(c, own, ""), nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for _, standard := range []*catalogue.Standard{catalogue.OJS(), catalogue.Cybercube()} {
		if t, ok := standard.Type(in.Name); ok {
			return eventTypeShown(c, t, standard.Name()), nil
		}
	}
	return nil, err
}

func (h *eventTypeHandlers) put(ctx context.Context, c *management.Caller, in *putEventTypeInput) (*putOutput[EventTypeDetail], error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	t, made, err := h.catalogue.Put(ctx, c.Tenant.ID, in.Name, catalogue.Draft{
		Description: in.Body.Description, Deprecated: in.Body.Deprecated,
		Schema: present(in.Body.Schema), Example: present(in.Body.Example),
		Compatibility: compat.Direction(in.Body.Compatibility), Force: in.Force,
	}, m)
	if err != nil {
		return nil, err
	}
	return written(made, t.Version, "/v1/event-types/"+t.Name, eventTypeShown(c, t, "").Body), nil
}

// present returns nil for a member that is null, so that null means absent.
func present(v json.RawMessage) json.RawMessage {
	if string(v) == "null" {
		return nil
	}
	return v
}

type deleteEventTypeInput struct {
	VersionParams
	Name string `path:"name" doc:"The type" example:"order.created"`
}

func (h *eventTypeHandlers) delete(ctx context.Context, c *management.Caller, in *deleteEventTypeInput) (*struct{}, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	return nil, h.catalogue.Delete(ctx, c.Tenant.ID, in.Name, m)
}
