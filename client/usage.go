package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// TenantUsage is what a tenant used.
type TenantUsage struct {
	TenantID  string     `json:"tenant_id"`
	TenantUID string     `json:"tenant_uid"` // the caller's own id of the tenant; empty: none
	Total     Usage      `json:"total"`      // of all the days
	Days      []DayUsage `json:"days"`       // days with usage, in order
}

// Usage counts what was used. The counts are exact.
type Usage struct {
	Events        int64 `json:"events"`         // accepted; the repeat of a request counts no second time
	Deliveries    int64 `json:"deliveries"`     // one for each endpoint that an event goes to
	Attempts      int64 `json:"attempts"`       // of any outcome
	BytesAccepted int64 `json:"bytes_accepted"` // payloads of the events
	BytesSent     int64 `json:"bytes_sent"`     // bodies of the requests, one for each attempt
}

// DayUsage is the usage of a day.
type DayUsage struct {
	Day string `json:"day"` // UTC, as in 2026-11-16
	Usage
}

// TotalUsage is the usage of several tenants together.
type TotalUsage struct {
	Total Usage      `json:"total"` // of all the days
	Days  []DayUsage `json:"days"`  // days with usage, in order
}

// UsageQuery selects usage. The zero value selects all tenants that the key may see, in the last 30 days.
type UsageQuery struct {
	From, To time.Time // first and last day, UTC. Default to 29 days before To, and to today
	Tenant   string    // id or uid of the only tenant
}

func (q UsageQuery) values() url.Values {
	query := url.Values{}
	if !q.From.IsZero() {
		query.Set("from", q.From.UTC().Format(time.DateOnly))
	}
	if !q.To.IsZero() {
		query.Set("to", q.To.UTC().Format(time.DateOnly))
	}
	if q.Tenant != "" {
		query.Set("tenant_id", q.Tenant)
	}
	return query
}

// UsageTotal adds up the usage of all tenants that Usage lists.
func (c *Client) UsageTotal(ctx context.Context, q UsageQuery) (*TotalUsage, error) {
	out := &TotalUsage{}
	return out, c.do(ctx, http.MethodGet, "/v1/usage/total?"+q.values().Encode(), nil, nil, out)
}

// Usage iterates over the usage of tenants, page by page. It ends after the first error. A key of a tenant sees that tenant, a key of
// an environment sees the environment's tenants.
func (c *Client) Usage(ctx context.Context, q UsageQuery) iter.Seq2[*TenantUsage, error] {
	return func(yield func(*TenantUsage, error) bool) {
		for item, err := range c.Resource("usage").All(ctx, q.values()) {
			u := &TenantUsage{}
			if err == nil {
				err = json.Unmarshal(item, u)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}
