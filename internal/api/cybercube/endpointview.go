package cybercube

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// endpointView is the standard's endpoint object (CCW-API-3). The members from health on are extensions of ours, except the
// counts and times.
type endpointView struct {
	ID            string   `json:"id"`
	URL           string   `json:"url"`
	Description   string   `json:"description,omitempty"`
	Events        []string `json:"events"`
	Secret        string   `json:"secret,omitempty"` // only in the response that creates it
	Status        string   `json:"status"`
	AccountID     string   `json:"account_id"`
	CreatedAt     string   `json:"created_at"`
	UpdatedAt     string   `json:"updated_at"`
	LastDelivery  string   `json:"last_delivery_at,omitempty"`
	LastSuccess   string   `json:"last_success_at,omitempty"`
	LastFailure   string   `json:"last_failure_at,omitempty"`
	FailureCount  int      `json:"failure_count"`
	Health        string   `json:"health"`
	SecretHint    string   `json:"secret_hint,omitempty"`
	SecretCreated string   `json:"secret_created_at,omitempty"`

	Filter         *filterView `json:"filter,omitempty"`
	DisabledAt     string      `json:"disabled_at,omitempty"`
	DisabledReason string      `json:"disabled_reason,omitempty"`
	ReenableAt     string      `json:"reenable_at,omitempty"`
}

// The values of health (CT-10). Health is read-only.
const (
	healthy  = "healthy"
	degraded = "degraded"
)

// endpointViews render endpoints with their health and the hint of their newest secret.
type endpointViews struct {
	secrets interface {
		List(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) ([]godwit.Secret, error)
	}
	engine interface {
		Health(id godwit.EndpointID) (godwit.Health, bool)
	}
	store interface {
		Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
	}
	now   func() time.Time
	scale godwit.TimeScale
}

// view renders the current state of an endpoint.
func (s *endpointViews) view(ctx context.Context, c *httpapi.Call, e *godwit.Endpoint) (*endpointView, error) {
	secrets, err := s.secrets.List(ctx, e.TenantID, e.ID)
	if err != nil {
		return nil, err
	}
	health, err := httpapi.HealthOf(ctx, s.engine, s.store, e.ID)
	if err != nil {
		return nil, err
	}
	v := &endpointView{
		ID: publicID(e), URL: e.URL, Description: e.Description, Events: e.Patterns, Status: string(e.Status),
		AccountID: accountID(c.Caller.Tenant), CreatedAt: timestamp(e.CreatedAt), UpdatedAt: timestamp(e.UpdatedAt),
		LastDelivery: moment(health.LastAttemptAt()), LastSuccess: moment(health.LastAcceptedAt), LastFailure: moment(health.LastFailureAt),
		FailureCount: health.Streak, Health: s.judge(e, health), Filter: viewFilter(e.Filter),
	}
	if len(secrets) > 0 { // newest first
		v.SecretHint, v.SecretCreated = secrets[0].Hint, timestamp(secrets[0].CreatedAt)
	}
	if e.Status == godwit.EndpointDisabled {
		v.DisabledAt, v.DisabledReason, v.ReenableAt = moment(e.StatusAt), e.StatusReason, moment(e.ReenableAt)
	}
	return v, nil
}

// judge computes the health from the last hour as of now, because an endpoint also recovers when its failures grow older
// than that (CCW-HLT-2).
func (s *endpointViews) judge(e *godwit.Endpoint, h *godwit.Health) string {
	policy, err := management.EffectivePolicy(e)
	if err != nil || policy.DegradedAbove <= 0 {
		return healthy
	}
	if h.Recent.FailedShare(s.now(), s.scale.Real(time.Minute)) > policy.DegradedAbove {
		return degraded
	}
	return healthy
}
