package native

import (
	"context"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

// StatsCounts has the counts of a time, or of a whole range.
type StatsCounts struct {
	Events         int64    `json:"events" doc:"Events accepted; of an endpoint: events for it"`
	Attempts       int64    `json:"attempts" doc:"Attempts to deliver, of any outcome"`
	Acknowledged   int64    `json:"acknowledged" doc:"Attempts that the receiver acknowledged; each ends its delivery"`
	FailedAttempts int64    `json:"failed_attempts" doc:"The other attempts"`
	Dead           int64    `json:"dead" doc:"Deliveries that became dead letters"`
	P50MS          *float64 `json:"p50_ms,omitempty" doc:"Half of the acknowledged deliveries took no longer than this from the acceptance of the event to the receiver's answer, waits and retries included. Off by 6.25 % at most; absent if there were none. Replays do not count"`
	P99MS          *float64 `json:"p99_ms,omitempty" doc:"99 of 100 took no longer"`
}

// StatsPoint has the counts of one step.
type StatsPoint struct {
	At time.Time `json:"at" doc:"Beginning of the step"`
	StatsCounts
}

// StatsGroup has the counts of an endpoint or a tenant.
type StatsGroup struct {
	Endpoint string       `json:"endpoint,omitempty" doc:"Id of the endpoint" example:"sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Tenant   string       `json:"tenant" doc:"Id of the tenant" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Total    StatsCounts  `json:"total"`
	Points   []StatsPoint `json:"points"`
}

// StatsRange is the range of an answer.
type StatsRange struct {
	Since        time.Time `json:"since" doc:"Beginning of the range: the one asked for, at the beginning of a step"`
	Until        time.Time `json:"until" doc:"End of the range, exclusive: at the end of a step"`
	CoveredSince time.Time `json:"covered_since" doc:"Since when the history covers the range: later than since if the server is younger, or keeps this step for a shorter time. Rates are right if they are divided by the time from here to covered_until"`
	CoveredUntil time.Time `json:"covered_until" doc:"Until when it covers the range: now, if the range ends later"`
}

// Stats is the history of a range.
type Stats struct {
	StatsRange
	Step       string       `json:"step" enum:"minute,hour,day"`
	Points     []StatsPoint `json:"points" doc:"One for each step, also those without traffic"`
	Total      StatsCounts  `json:"total" doc:"Of all points"`
	Groups     []StatsGroup `json:"groups,omitempty" doc:"With group: those with the most failed attempts first"`
	GroupCount int          `json:"group_count,omitempty" doc:"With group: how many there are; groups has limit of them at most"`
}

// FailureCause is a cause of failed attempts.
type FailureCause struct {
	Cause     string    `json:"cause" enum:"certificate,dns,timeout,refused,connect,reset,tls,truncated,protocol,address,redirect,credential,request,server-error,client-error,response,other"`
	Code      int       `json:"code,omitempty" doc:"HTTP status, if the receiver answered" example:"503"`
	Count     int64     `json:"count" doc:"Failed attempts"`
	Endpoints int       `json:"endpoints" doc:"How many endpoints"`
	Example   string    `json:"example_endpoint" doc:"Id of the endpoint with the most" example:"sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Tenant    string    `json:"example_tenant" doc:"Id of its tenant"`
	FirstAt   time.Time `json:"first_at" doc:"First seen within the range"`
	LastAt    time.Time `json:"last_at" doc:"Last seen within the range"`
	Advice    string    `json:"advice" doc:"What to do about it"`
}

// Failures are the causes of failed attempts in a range.
type Failures struct {
	StatsRange
	Causes []FailureCause `json:"causes" doc:"The most frequent first"`
}

// Waiting is what waits now.
type Waiting struct {
	Waiting   int              `json:"waiting" doc:"Deliveries that wait or are under way; counted up to 100000"`
	Capped    bool             `json:"waiting_capped" doc:"There are more than were counted"`
	OldestAt  *time.Time       `json:"oldest_at,omitempty" doc:"Since when the delivery is due that is due for longest, or when the next one is due; absent if none waits"`
	Endpoints WaitingEndpoints `json:"endpoints"`
}

// WaitingEndpoints counts endpoints by their state. Each is counted once, under the first that applies.
type WaitingEndpoints struct {
	Disabled int `json:"disabled"`
	Paused   int `json:"paused"`
	Open     int `json:"open" doc:"With an open circuit: only probed"`
	Failing  int `json:"failing" doc:"The last attempt failed, or too many did in the last hour"`
	Healthy  int `json:"healthy"`
}

type (
	statsInput struct {
		StatsParams
		Step  string `query:"step" enum:"minute,hour,day" doc:"Length of a point. Defaults to minute for up to 6 hours, hour for up to 7 days, and day above"`
		Group string `query:"group" enum:"none,endpoint,tenant" default:"none" doc:"Show endpoints or tenants one by one as well"`
		Limit int    `query:"limit" minimum:"1" maximum:"200" default:"20" doc:"How many groups at most"`
	}
	failuresInput struct{ StatsParams }
	waitingInput  struct {
		Tenant string `query:"tenant_id" maxLength:"100" doc:"Id or uid of the only tenant to count"`
	}
	historyOutput  struct{ Body Stats }
	failuresOutput struct{ Body Failures }
	waitingOutput  struct{ Body Waiting }
)

// StatsParams select a part of the history.
type StatsParams struct {
	Since    time.Time `query:"since" doc:"At or after this time (RFC 3339). Defaults to a day before until"`
	Until    time.Time `query:"until" doc:"Before this time (RFC 3339). Defaults to now"`
	Endpoint string    `query:"endpoint" maxLength:"10000" doc:"Only this endpoint; several ids, with commas between, if they are grouped. A request for several tenants names it by its id"`
	Tenant   string    `query:"tenant_id" maxLength:"100" doc:"Id or uid of the only tenant to show"`
}

var getStatsDoc = huma.Operation{
	OperationID: "get-stats", Summary: "Show the history",
	Description: "Counts and latencies, step by step. Each count is stored in the transaction that stores what it counts, at the time of that transaction: the numbers are " +
		"exact, also after a crash and with several nodes. Minutes are kept for 2 days, hours for 31 days and days for 400 days, unless the server is set up otherwise. " +
		"A request for a tenant shows that tenant; one for an environment shows all its tenants together; an administrator's request that names neither shows the whole server.",
}

var getFailuresDoc = huma.Operation{
	OperationID: "get-failures", Summary: "Show why attempts failed",
	Description: "Failed attempts by cause, with the endpoints that they concern and what to do about it. What a request may see is as with the history.",
}

var getWaitingDoc = huma.Operation{
	OperationID: "get-waiting", Summary: "Show what waits now",
	Description: "Waiting deliveries, and endpoints by their state. What a request may see is as with the history.",
}

// statsStore is the part of the store that keeps the history.
type statsStore interface {
	stats.Store
	CountBacklog(ctx context.Context, f store.BacklogFilter) (*store.Backlog, error)
}

const (
	statsDefault = 24 * time.Hour
	maxPoints    = 3_000   // of a series
	maxAllPoints = 100_000 // of all groups
	maxEndpoints = 200     // that a request may name
	maxBacklog   = 100_000
)

// historyHandlers serve the history.
type historyHandlers struct {
	store  statsStore
	owners ownerFinder
	finder endpointFinder
	kept   stats.Retention
	now    func() time.Time
}

// stats shows the history of a range.
func (h *historyHandlers) stats(ctx context.Context, c *management.Caller, in *statsInput) (*historyOutput, error) {
	now := h.now()
	since, until, err := statsTimes(&in.StatsParams, now)
	if err != nil {
		return nil, err
	}
	r := slotsOf(stepOf(in.Step, until.Sub(since)), since, until, now)
	switch n := r.Slots(); {
	case n > maxPoints:
		return nil, problem.InvalidRequest.In("step", "gives %d points; %d are allowed. Choose a longer step or a shorter range", n, maxPoints)
	case in.Group != "none" && n*in.Limit > maxAllPoints:
		return nil, problem.InvalidRequest.In("limit", "gives %d points in all groups; %d are allowed. Choose a lower limit, a longer step or a shorter range", n*in.Limit, maxAllPoints)
	}
	sel, err := h.selection(ctx, c, &in.StatsParams, in.Group == "endpoint")
	if err != nil {
		return nil, err
	}
	whole, began, err := stats.Read(ctx, h.store, sel, r)
	if err != nil {
		return nil, err
	}
	sum := &stats.Series{Points: make([]stats.Cell, r.Slots())}
	for _, s := range whole { // several, if the request names several endpoints
		for i := range s.Points {
			sum.Points[i].Counts.Add(s.Points[i].Counts)
			sum.Points[i].Latency.Merge(s.Points[i].Latency)
		}
		sum.Total.Counts.Add(s.Total.Counts)
		sum.Total.Latency.Merge(s.Total.Latency)
	}
	out := &historyOutput{}
	out.Body = Stats{Step: r.Level.String(), StatsRange: h.rangeView(r, began, now), Total: countsView(&sum.Total), Points: pointsView(sum, r)}
	if in.Group == "none" {
		return out, nil
	}
	if in.Group == "endpoint" {
		sel = endpointsOf(sel)
	} else {
		if len(sel.Endpoints) > 0 {
			return nil, problem.InvalidRequest.In("group", "must not be tenant where endpoint is given")
		}
		sel = tenantsOf(sel)
	}
	groups, all, _, err := stats.Top(ctx, h.store, sel, r, in.Limit)
	if err != nil {
		return nil, err
	}
	out.Body.GroupCount, out.Body.Groups = all, make([]StatsGroup, len(groups))
	for i, g := range groups {
		v := &out.Body.Groups[i]
		*v = StatsGroup{Tenant: g.Tenant.String(), Total: countsView(&g.Total), Points: pointsView(g, r)}
		if !g.Endpoint.IsZero() {
			v.Endpoint = g.Endpoint.String()
		}
	}
	return out, nil
}

// failures shows the causes of failed attempts.
func (h *historyHandlers) failures(ctx context.Context, c *management.Caller, in *failuresInput) (*failuresOutput, error) {
	now := h.now()
	since, until, err := statsTimes(&in.StatsParams, now)
	if err != nil {
		return nil, err
	}
	level := stats.Minute
	for level < stats.Day && since.Before(now.Add(-h.kept.Of(level))) {
		level++
	}
	r := slotsOf(level, since, until, now)
	if longest := h.kept.Of(stats.Day) + 32*24*time.Hour; until.Sub(since) > longest {
		return nil, problem.InvalidRequest.In("since", "is more than %d days before until", int(longest.Hours())/24)
	}
	sel, err := h.selection(ctx, c, &in.StatsParams, true)
	if err != nil {
		return nil, err
	}
	list, began, err := stats.Failures(ctx, h.store, endpointsOf(sel), r)
	if err != nil {
		return nil, err
	}
	out := &failuresOutput{}
	out.Body = Failures{StatsRange: h.rangeView(r, began, now), Causes: make([]FailureCause, len(list))}
	for i, f := range list {
		out.Body.Causes[i] = FailureCause{
			Cause: f.Kind.String(), Code: f.Status, Count: f.Count, Endpoints: f.Endpoints, Example: f.Example.String(), Tenant: f.Tenant.String(),
			FirstAt: time.Unix(f.First, 0).UTC(), LastAt: time.Unix(f.Last, 0).UTC(), Advice: f.Advice(),
		}
	}
	return out, nil
}

// waiting shows what waits now.
func (h *historyHandlers) waiting(ctx context.Context, c *management.Caller, in *waitingInput) (*waitingOutput, error) {
	environment, tenant, err := h.owners.own(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	b, err := h.store.CountBacklog(ctx, store.BacklogFilter{Environment: environment, Tenant: tenant, UpTo: maxBacklog + 1})
	if err != nil {
		return nil, err
	}
	out := &waitingOutput{}
	out.Body = Waiting{
		Waiting: min(b.Waiting, maxBacklog), Capped: b.Waiting > maxBacklog, OldestAt: timestamp(b.OldestAt),
		Endpoints: WaitingEndpoints{Disabled: b.Disabled, Paused: b.Paused, Open: b.Open, Failing: b.Failing, Healthy: b.Healthy},
	}
	return out, nil
}

// statsTimes returns the range that a request asks for.
func statsTimes(in *StatsParams, now time.Time) (since, until time.Time, err error) {
	since, until = in.Since, in.Until
	if until.IsZero() {
		until = now
	}
	if since.IsZero() {
		since = until.Add(-statsDefault)
	}
	if since.Unix() < 0 {
		return since, until, problem.InvalidRequest.In("since", "is before 1970")
	}
	if !since.Before(until) {
		return since, until, problem.InvalidRequest.In("since", "must be before until")
	}
	return since, until, nil
}

// stepOf returns the named step, or the one that suits the length of a range.
func stepOf(name string, length time.Duration) stats.Level {
	for _, level := range stats.Levels {
		if level.String() == name {
			return level
		}
	}
	switch {
	case length <= 6*time.Hour:
		return stats.Minute
	case length <= 7*24*time.Hour:
		return stats.Hour
	}
	return stats.Day
}

// slotsOf extends a range to whole steps. It ends with the present one at the latest.
func slotsOf(level stats.Level, since, until, now time.Time) stats.Range {
	step := level.Seconds()
	r := stats.Range{Level: level, Since: since.Unix() / step * step}
	r.Until = (until.Add(time.Second-1).Unix() + step - 1) / step * step
	r.Until = min(r.Until, (now.Unix()/step+1)*step)
	r.Since = min(r.Since, r.Until-step)
	return r
}

// selection returns whose history a request asks for: of the endpoints that it names, or of all.
func (h *historyHandlers) selection(ctx context.Context, c *management.Caller, in *StatsParams, several bool) (sel stats.Selection, err error) {
	environment, tenant, err := h.owners.own(ctx, c, in.Tenant)
	if err != nil {
		return sel, err
	}
	sel.Environment = environment
	switch {
	case !tenant.IsZero():
		sel.Kind, sel.Owner = stats.OfTenant, tenant
	case !environment.IsZero():
		sel.Kind, sel.Owner = stats.OfEnvironment, environment
	default:
		sel.Kind = stats.OfServer
	}
	if in.Endpoint == "" {
		return sel, nil
	}
	names := strings.Split(in.Endpoint, ",")
	if len(names) > 1 && !several {
		return sel, problem.InvalidRequest.In("endpoint", "names several endpoints; that needs group=endpoint")
	}
	if len(names) > maxEndpoints {
		return sel, problem.InvalidRequest.In("endpoint", "names %d endpoints; %d are allowed", len(names), maxEndpoints)
	}
	sel = endpointsOf(sel)
	for _, name := range names {
		id, err := godwit.ParseEndpointID(name)
		if err != nil {
			if tenant.IsZero() || tenant != c.Tenant.ID {
				return sel, badID("endpoint", "sub_…")
			}
			if id, err = h.finder.filter(ctx, c, name); err != nil {
				return sel, err
			}
		}
		sel.Endpoints = append(sel.Endpoints, id)
	}
	return sel, nil
}

// endpointsOf selects the endpoints of what sel is about.
func endpointsOf(sel stats.Selection) stats.Selection {
	if sel.Kind != stats.OfTenant && sel.Kind != stats.OfEndpoint {
		sel.Owner = [16]byte{}
	}
	sel.Kind = stats.OfEndpoint
	return sel
}

// tenantsOf selects the tenants of what sel is about.
func tenantsOf(sel stats.Selection) stats.Selection {
	if sel.Kind != stats.OfTenant {
		sel.Owner = [16]byte{}
	}
	sel.Kind = stats.OfTenant
	return sel
}

// rangeView says which part of a range the history covers.
func (h *historyHandlers) rangeView(r stats.Range, began, now time.Time) StatsRange {
	v := StatsRange{Since: time.Unix(r.Since, 0).UTC(), Until: time.Unix(r.Until, 0).UTC()}
	v.CoveredSince, v.CoveredUntil = v.Since, v.Until
	if now.Before(v.CoveredUntil) {
		v.CoveredUntil = now.UTC()
	}
	if began.IsZero() {
		began = now
	}
	for _, bound := range []time.Time{began, now.Add(-h.kept.Of(r.Level))} {
		if bound.After(v.CoveredSince) {
			v.CoveredSince = bound.UTC()
		}
	}
	if v.CoveredSince.After(v.CoveredUntil) {
		v.CoveredSince = v.CoveredUntil
	}
	return v
}

func countsView(c *stats.Cell) StatsCounts {
	v := StatsCounts{Events: c.Events, Attempts: c.Attempts(), Acknowledged: c.Acknowledged, FailedAttempts: c.Failed, Dead: c.Dead}
	for q, into := range map[float64]**float64{0.5: &v.P50MS, 0.99: &v.P99MS} {
		if d, ok := c.Latency.Quantile(q); ok {
			ms := float64(d.Microseconds()) / 1000
			*into = &ms
		}
	}
	return v
}

func pointsView(s *stats.Series, r stats.Range) []StatsPoint {
	points := make([]StatsPoint, len(s.Points))
	for i := range points {
		points[i] = StatsPoint{At: time.Unix(r.Since+int64(i)*r.Level.Seconds(), 0).UTC(), StatsCounts: countsView(&s.Points[i])}
	}
	return points
}
