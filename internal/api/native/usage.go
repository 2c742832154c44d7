package native

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// TenantUsage is the usage of a tenant as the API shows it.
type TenantUsage struct {
	TenantID  string     `json:"tenant_id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	TenantUID string     `json:"tenant_uid,omitempty" doc:"The caller's own id of the tenant" example:"customer-42"`
	Total     Usage      `json:"total" doc:"Of all the days below"`
	Days      []DayUsage `json:"days" doc:"Days with usage, in order"`
}

// Usage has the counts.
type Usage struct {
	Events        int64 `json:"events" doc:"Events accepted; the repeat of a request counts no second time"`
	Deliveries    int64 `json:"deliveries" doc:"Deliveries made: one for each endpoint that an event goes to"`
	Attempts      int64 `json:"attempts" doc:"Attempts to deliver, of any outcome"`
	BytesAccepted int64 `json:"bytes_accepted" doc:"Payloads of the events, as they are stored"`
	BytesSent     int64 `json:"bytes_sent" doc:"Bodies of the requests to endpoints, one for each attempt"`
}

// DayUsage is the usage of a day.
type DayUsage struct {
	Day string `json:"day" format:"date" doc:"UTC" example:"2026-11-16"`
	Usage
}

func usageView(u *godwit.TenantUsage) TenantUsage {
	v := TenantUsage{TenantID: u.TenantID.String(), TenantUID: u.UID}
	v.Total, v.Days = usageByDay(u.Days)
	return v
}

func usageByDay(list []godwit.DayUsage) (total Usage, days []DayUsage) {
	days = make([]DayUsage, len(list))
	for i := range list {
		days[i] = DayUsage{Day: list[i].Day.Format(time.DateOnly), Usage: Usage(list[i].Usage)}
	}
	return Usage(godwit.TotalUsage(list)), days
}

// UsageTotal is the usage of several tenants together.
type UsageTotal struct {
	Total Usage      `json:"total" doc:"Of all the days below"`
	Days  []DayUsage `json:"days" doc:"Days with usage, in order"`
}

type usageTotalOutput struct{ Body UsageTotal }

type usageInput struct {
	PageParams
	UsageParams
}

type usageTotalInput struct{ UsageParams }

// UsageParams select usage.
type UsageParams struct {
	From   string `query:"from" format:"date" doc:"First day, UTC. Defaults to the day 29 days before the last"`
	To     string `query:"to" format:"date" doc:"Last day, UTC. Defaults to today"`
	Tenant string `query:"tenant_id" maxLength:"100" doc:"Id or uid of the only tenant to show; the id, if it is deleted"`
}

var listUsageDoc = huma.Operation{
	OperationID: "list-usage", Summary: "List usage",
	Description: "What tenants used, by day (UTC), kept for 13 months. Each count is stored in the transaction that stores what it counts: the numbers are exact. " +
		"A request for a tenant shows that tenant; one for an environment shows the environment's tenants with usage, also deleted ones; an administrator's request " +
		"that names neither shows those of all environments. A page is a number of tenants.",
}

var totalUsageDoc = huma.Operation{
	OperationID: "get-usage-total", Summary: "Show the usage of all tenants together",
	Description: "The sum over the tenants that the list of usage shows, by day.",
}

// usageDays are shown unless the request names a first day.
const usageDays = 30

// usageStore is the part of the store that keeps usage.
type usageStore interface {
	ListUsage(ctx context.Context, f store.UsageFilter, p store.Page) ([]godwit.TenantUsage, error)
	SumUsage(ctx context.Context, f store.UsageFilter) ([]godwit.DayUsage, error)
}

// usageHandlers serve usage.
type usageHandlers struct {
	store  usageStore
	owners ownerFinder
	now    func() time.Time
}

func (h *usageHandlers) list(ctx context.Context, c *management.Caller, in *usageInput) (*listOutput[TenantUsage], error) {
	f, err := h.filter(ctx, c, &in.UsageParams)
	if err != nil {
		return nil, err
	}
	return usages.page(in.PageParams, func(p store.Page) ([]godwit.TenantUsage, error) { return h.store.ListUsage(ctx, f, p) })
}

func (h *usageHandlers) total(ctx context.Context, c *management.Caller, in *usageTotalInput) (*usageTotalOutput, error) {
	f, err := h.filter(ctx, c, &in.UsageParams)
	if err != nil {
		return nil, err
	}
	days, err := h.store.SumUsage(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &usageTotalOutput{}
	out.Body.Total, out.Body.Days = usageByDay(days)
	return out, nil
}

// filter selects what the request asks for, within what the caller may see.
func (h *usageHandlers) filter(ctx context.Context, c *management.Caller, in *UsageParams) (f store.UsageFilter, err error) {
	if f.To, err = usageDay("to", in.To, h.now()); err != nil {
		return f, err
	}
	if f.From, err = usageDay("from", in.From, f.To.AddDate(0, 0, 1-usageDays)); err != nil {
		return f, err
	}
	if f.From.After(f.To) {
		return f, problem.InvalidRequest.In("from", "is after to")
	}
	if f.To.Sub(f.From) >= godwit.MaxUsageDays*24*time.Hour {
		return f, problem.InvalidRequest.In("from", "is more than %d days before to", godwit.MaxUsageDays-1)
	}
	f.Environment, f.Tenant, err = h.owners.find(ctx, c, in.Tenant)
	return f, err
}

// An ownerFinder finds out whose numbers a request asks for, within what the caller may see.
type ownerFinder struct {
	tenants interface {
		Find(ctx context.Context, environment godwit.EnvironmentID, named string) (*godwit.Tenant, error)
	}
}

// find returns the environment or the tenant, or neither: an administrator that names none sees everything. named is the id or uid of a tenant, if the
// request has one.
func (o ownerFinder) find(ctx context.Context, c *management.Caller, named string) (environment godwit.EnvironmentID, tenant godwit.TenantID, err error) {
	switch {
	case c.ForEnvironment():
		environment = c.Tenant.EnvironmentID
	case c.Named || !c.Key.Has(godwit.ScopeAdmin):
		tenant = c.Tenant.ID
	}
	if named == "" {
		return environment, tenant, nil
	}
	id, malformed := godwit.ParseTenantID(named) // not looked up: the tenant may be deleted
	if malformed != nil {
		t, err := o.tenants.Find(ctx, c.Tenant.EnvironmentID, named)
		if err != nil {
			return environment, tenant, err
		}
		id = t.ID
	}
	if !tenant.IsZero() && tenant != id {
		return environment, tenant, store.ErrNotFound
	}
	return environment, id, nil
}

// own is find, and refuses a tenant that is not one of the caller's environment. Deleted tenants have no numbers of this kind.
func (o ownerFinder) own(ctx context.Context, c *management.Caller, named string) (environment godwit.EnvironmentID, tenant godwit.TenantID, err error) {
	environment, tenant, err = o.find(ctx, c, named)
	if err != nil || environment.IsZero() || tenant.IsZero() {
		return environment, tenant, err
	}
	t, err := o.tenants.Find(ctx, environment, named)
	if err == nil && t.EnvironmentID != environment {
		err = store.ErrNotFound
	}
	return environment, tenant, err
}

func usageDay(field, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return godwit.DayOf(otherwise), nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, problem.InvalidRequest.In(field, "must be a day as in 2026-11-16")
	}
	return day, nil
}
