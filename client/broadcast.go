package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Broadcast is the progress of an event for several tenants.
type Broadcast struct {
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	AllTenants bool      `json:"all_tenants"`
	State      string    `json:"state"`      // running or ended
	Tenants    int       `json:"tenants"`    // fixed when the broadcast was accepted
	Accepted   int       `json:"accepted"`   // tenants whose event is stored
	Skipped    int       `json:"skipped"`    // tenants that get none
	Deliveries int       `json:"deliveries"` // of the events so far
	CreatedAt  time.Time `json:"created_at"`
	EndedAt    time.Time `json:"ended_at,omitzero"` // zero while it runs
	// Items has the result of each tenant in the answer of Client.Broadcast, if they are at most 100.
	Items []BroadcastTenant `json:"items,omitempty"`
}

// Ended reports whether every tenant has a result.
func (b *Broadcast) Ended() bool { return b.State == "ended" }

// A BroadcastTenant is the result of a broadcast for one tenant.
type BroadcastTenant struct {
	TenantID string `json:"tenant_id"`
	UID      string `json:"uid,omitempty"`
	Status   string `json:"status"`             // accepted or skipped
	EventID  string `json:"event_id,omitempty"` // of an accepted one
	Reason   string `json:"reason,omitempty"`   // of a skipped one: invalid, limit or tenant-deleted
	Detail   string `json:"detail,omitempty"`
}

// Broadcast posts an event for several tenants of an environment, named by their ids or uids: each gets an event of its own. Without names it is
// for all tenants that have an endpoint for the event. The key is one of the environment, or has the scope admin. When Broadcast returns
// nil, every one of these tenants will have its event; GetBroadcast tells how far it is.
func (c *Client) Broadcast(ctx context.Context, e Event, tenants ...string) (*Broadcast, error) {
	names := "*"
	if len(tenants) > 0 {
		names = strings.Join(tenants, ",")
		if len(tenants) == 1 {
			names += "," // a single name would be an event for one tenant
		}
	}
	path, header := e.request()
	var answer struct {
		Broadcast *Broadcast `json:"broadcast"`
	}
	if err := c.With(WithTenant(names)).post(ctx, path, e.IdempotencyKey, header, e.Body, &answer); err != nil {
		return nil, err
	}
	if answer.Broadcast == nil {
		return nil, fmt.Errorf("the server knows no broadcasts")
	}
	return answer.Broadcast, nil
}

// GetBroadcast returns the progress of a broadcast.
func (c *Client) GetBroadcast(ctx context.Context, id string) (*Broadcast, error) {
	var b Broadcast
	if err := c.forEnvironment().do(ctx, http.MethodGet, "/v1/broadcasts/"+url.PathEscape(id), nil, nil, &b); err != nil {
		return nil, err
	}
	return &b, nil
}

// BroadcastTenants iterates over the tenants of a broadcast that have a result, or over those that were skipped. It ends after the first
// error.
func (c *Client) BroadcastTenants(ctx context.Context, id string, skipped bool) iter.Seq2[BroadcastTenant, error] {
	query := url.Values{}
	if skipped {
		query.Set("status", "skipped")
	}
	return func(yield func(BroadcastTenant, error) bool) {
		for text, err := range c.forEnvironment().Resource("broadcasts", id, "tenants").All(ctx, query) {
			var t BroadcastTenant
			if err == nil {
				err = json.Unmarshal(text, &t)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// forEnvironment returns a client that names no tenant: broadcasts belong to the environment.
func (c *Client) forEnvironment() *Client { return c.With(WithTenant("")) }
