package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// StatsCounts are the counts of a time, or of a whole range.
type StatsCounts struct {
	Events         int64    `json:"events"` // accepted; of an endpoint: events for it
	Attempts       int64    `json:"attempts"`
	Acknowledged   int64    `json:"acknowledged"`    // attempts that the receiver acknowledged
	FailedAttempts int64    `json:"failed_attempts"` // the other attempts
	Dead           int64    `json:"dead"`            // deliveries that became dead letters
	P50MS          *float64 `json:"p50_ms"`          // from acceptance to acknowledgement; nil if nothing was acknowledged
	P99MS          *float64 `json:"p99_ms"`
}

// StatsPoint has the counts of one step.
type StatsPoint struct {
	At time.Time `json:"at"` // its beginning
	StatsCounts
}

// StatsGroup has the counts of an endpoint or a tenant.
type StatsGroup struct {
	Endpoint string       `json:"endpoint"` // empty: grouped by tenant
	Tenant   string       `json:"tenant"`
	Total    StatsCounts  `json:"total"`
	Points   []StatsPoint `json:"points"`
}

// Stats is the history of a range.
type Stats struct {
	Since        time.Time    `json:"since"`
	Until        time.Time    `json:"until"`
	CoveredSince time.Time    `json:"covered_since"` // rates are right if they are divided by the time from here to CoveredUntil
	CoveredUntil time.Time    `json:"covered_until"`
	Step         string       `json:"step"` // minute, hour or day
	Total        StatsCounts  `json:"total"`
	Points       []StatsPoint `json:"points"` // one for each step
	Groups       []StatsGroup `json:"groups"` // those with the most failed attempts first
	GroupCount   int          `json:"group_count"`
}

// StatsQuery selects a part of the history. The zero value selects the last day of all that the key may see.
type StatsQuery struct {
	Since, Until time.Time
	Step         string // minute, hour or day; empty: one that suits the range
	Endpoint     string // id or uid of the only endpoint
	Tenant       string // id or uid of the only tenant
	Group        string // endpoint or tenant; empty: no groups
	Limit        int    // of groups; 0: 20
}

// Stats returns counts and latencies over time.
func (c *Client) Stats(ctx context.Context, q StatsQuery) (*Stats, error) {
	query := url.Values{}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, text := range map[string]string{"step": q.Step, "endpoint": q.Endpoint, "tenant_id": q.Tenant, "group": q.Group} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	out := &Stats{}
	return out, c.do(ctx, http.MethodGet, "/v1/stats?"+query.Encode(), nil, nil, out)
}
