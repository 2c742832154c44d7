package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// An EventType is an entry of the tenant's catalogue: the meaning and schema of events of a type.
type EventType struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Deprecated  bool            `json:"deprecated"`
	Standard    string          `json:"standard,omitempty"` // the standard that it comes from: ojs or cybercube; empty for the tenant's own
	Version     int             `json:"version,omitempty"`  // of the schema in force
	Schema      json.RawMessage `json:"schema,omitempty"`   // JSON Schema, draft 2020-12
	Example     json.RawMessage `json:"example,omitempty"`
	// Compatibility is what the next version of the schema must keep to: backward, forward, full or none.
	Compatibility string `json:"compatibility,omitempty"`
	// Force makes PutEventType store a schema that does not keep to it.
	Force    bool          `json:"-"`
	Versions []EventSchema `json:"versions,omitempty"` // oldest first; not in lists
}

// An EventSchema is one version of a type's schema.
type EventSchema struct {
	Version   int             `json:"version"`
	Schema    json.RawMessage `json:"schema"`
	CreatedAt time.Time       `json:"created_at,omitzero"`
}

// EventTypes lists the tenant's own types by name, or those that are built in from a standard: ojs or cybercube.
func (c *Client) EventTypes(ctx context.Context, standard string) ([]EventType, error) {
	query := url.Values{"limit": {"200"}}
	if standard != "" {
		query.Set("standard", standard)
	}
	var all []EventType
	for {
		var page struct {
			Items      []EventType `json:"items"`
			NextCursor string      `json:"next_cursor"`
		}
		if err := c.do(ctx, http.MethodGet, "/v1/event-types?"+query.Encode(), nil, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == "" {
			return all, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// EventType gets one type with every version of its schema: the tenant's own, or else a standard's.
func (c *Client) EventType(ctx context.Context, name string) (*EventType, error) {
	var t EventType
	if err := c.do(ctx, http.MethodGet, "/v1/event-types/"+url.PathEscape(name), nil, nil, &t); err != nil {
		return nil, err
	}
	return &t, nil
}

// PutEventType writes a type: its Name, Description, Deprecated, Schema, Example and Compatibility. A Schema that differs from the
// current one becomes the next version; without a Schema the current one stays, and without a Compatibility the declared one.
func (c *Client) PutEventType(ctx context.Context, t EventType) (*EventType, error) {
	body, err := json.Marshal(struct {
		Description   string          `json:"description"`
		Deprecated    bool            `json:"deprecated"`
		Schema        json.RawMessage `json:"schema,omitempty"`
		Example       json.RawMessage `json:"example,omitempty"`
		Compatibility string          `json:"compatibility,omitempty"`
	}{t.Description, t.Deprecated, t.Schema, t.Example, t.Compatibility})
	if err != nil {
		return nil, err
	}
	path := "/v1/event-types/" + url.PathEscape(t.Name)
	if t.Force {
		path += "?force=true"
	}
	var out EventType
	if err := c.do(ctx, http.MethodPut, path, nil, body, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// DeleteEventType removes a type from the tenant's catalogue.
func (c *Client) DeleteEventType(ctx context.Context, name string) error {
	// Not repeated: a repeat could not tell a type that it has just deleted from one that never existed.
	return c.once(ctx, http.MethodDelete, "/v1/event-types/"+url.PathEscape(name), nil, nil, nil)
}

// Catalogue returns the tenant's own and shared event types as a document for generators: format is openapi (3.1, webhooks) or
// asyncapi (3.0, messages).
func (c *Client) Catalogue(ctx context.Context, format string) (json.RawMessage, error) {
	var document json.RawMessage
	err := c.do(ctx, http.MethodGet, "/v1/catalogue?"+url.Values{"format": {format}}.Encode(), nil, nil, &document)
	return document, err
}
