package client

import (
	"context"
	"encoding/json"
)

// NewEndpoint describes an endpoint to be created. Omitted members get the server's defaults.
type NewEndpoint struct {
	URL         string              `json:"url"`
	Profile     string              `json:"profile,omitempty"`
	Description string              `json:"description,omitempty"`
	Patterns    []string            `json:"patterns,omitempty"`
	Filter      map[string][]string `json:"filter,omitempty"`
	Headers     map[string]string   `json:"headers,omitempty"`
	Policy      map[string]any      `json:"policy,omitempty"`
	Metadata    map[string]any      `json:"metadata,omitempty"` // any JSON values
	Algorithm   string              `json:"algorithm,omitempty"`
	Secret      string              `json:"secret,omitempty"` // your own signing key, in the profile's form; empty for a new one
	Paused      bool                `json:"paused,omitempty"` // it starts paused
}

// An Endpoint is a subscriber.
type Endpoint struct {
	ID          string                     `json:"id"`
	PublicID    string                     `json:"public_id"` // WEB-XXXXXX-X: the same endpoint in a form for people
	URL         string                     `json:"url"`
	Profile     string                     `json:"profile"`
	Description string                     `json:"description"`
	Patterns    []string                   `json:"patterns"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
	Status      string                     `json:"status"`
	// Secret is set only in the response to CreateEndpoint.
	Secret *struct {
		ID        string `json:"id"`
		Algorithm string `json:"algorithm"`
		PublicKey string `json:"public_key"`
		Value     string `json:"value"`
	} `json:"secret"`
}

// CreateEndpoint registers a subscriber.
func (c *Client) CreateEndpoint(ctx context.Context, e NewEndpoint) (*Endpoint, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	var out Endpoint
	if err := c.post(ctx, "/v1/endpoints", "", nil, body, &out); err != nil {
		return nil, err
	}
	return &out, nil
}
