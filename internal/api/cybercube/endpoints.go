package cybercube

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"strconv"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// wireProfile is the profile of endpoints that this API creates.
const wireProfile = "cybercube"

// endpointHandlers serve the operations on endpoints.
type endpointHandlers struct {
	endpoints interface {
		Create(ctx context.Context, t *godwit.Tenant, n management.NewEndpoint) (*godwit.Endpoint, *management.IssuedSecret, error)
		List(ctx context.Context, f store.EndpointFilter, p store.Page) ([]godwit.Endpoint, error)
		Update(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, m godwit.Match, edit func(*management.EndpointSpec) error) (*godwit.Endpoint, error)
		Pause(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, reason string) (*godwit.Endpoint, error)
		Disable(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, reason string) (*godwit.Endpoint, error)
		Resume(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
	}
	commands interface {
		DeleteEndpoint(ctx context.Context, r builtincommand.Request, id godwit.EndpointID, m godwit.Match) error
	}
	api    *httpapi.API
	finder endpointFinder
	views  *endpointViews
	limits *budgets
}

func (h *endpointHandlers) create(c *httpapi.Call) error {
	f, err := readForm(c.Body, "url", "description", "events", "filter")
	if err != nil {
		return err
	}
	f.required("url")
	n := management.NewEndpoint{EndpointSpec: management.EndpointSpec{
		URL: f.text("url"), Profile: wireProfile, Description: f.text("description"), Patterns: f.texts("events"), Filter: f.filter(),
	}}
	if err := f.err(); err != nil {
		return err
	}
	giveBack, err := h.limits.create.take(c.R.Context(), c.W.Header(), c.Tenant())
	if err != nil {
		return err
	}
	ctx := c.R.Context()
	n.ByPlatform = c.Caller.Platform()
	e, secret, err := h.endpoints.Create(ctx, c.Caller.Tenant, n)
	if err != nil {
		giveBack()
		return err
	}
	v, err := h.views.view(ctx, c, e)
	if err != nil {
		return err
	}
	v.Secret = secret.Value
	c.W.Header().Set("Location", Prefix+"endpoints/"+v.ID)
	return answer(c, http.StatusCreated, v)
}

// Page sizes of lists (CT-25).
const (
	pageUsual = 20
	pageMost  = 100
)

func (h *endpointHandlers) list(c *httpapi.Call) error {
	p, err := query(c.R.URL, "limit", "cursor")
	if err != nil {
		return err
	}
	page := p.page()
	if err := p.err(); err != nil {
		return err
	}
	page.Limit++ // one more, to learn whether there is a next page
	endpoints, err := h.endpoints.List(c.R.Context(), store.EndpointFilter{TenantID: c.Tenant()}, page)
	if err != nil {
		return err
	}
	views := make([]*endpointView, 0, len(endpoints))
	var next string
	for i := range endpoints {
		if len(views) == page.Limit-1 {
			next = cursor(endpoints[i-1].ID)
			break
		}
		v, err := h.views.view(c.R.Context(), c, &endpoints[i])
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	writeJSON(c.W, c.R, http.StatusOK, paged(c, p, views, next))
	return nil
}

// page reads the parameters limit and cursor.
func (p *params) page() store.Page {
	page := store.Page{Limit: p.limit(pageUsual, pageMost)}
	if p.values.Has("cursor") {
		id, err := base64.RawURLEncoding.DecodeString(p.values.Get("cursor"))
		if err != nil || len(id) != len(page.After) {
			p.wrong("cursor", "must be one that an answer of this list gave")
			return page
		}
		copy(page.After[:], id)
	}
	return page
}

func cursor(last [16]byte) string { return base64.RawURLEncoding.EncodeToString(last[:]) }

// paged puts one page of a list into its envelope.
func paged[T any](c *httpapi.Call, p *params, items []T, next string) list[T] {
	l := list[T]{Data: items, Links: links{Self: c.R.URL.RequestURI()}}
	l.Meta.Pagination = pagination{PageSize: len(items), HasNext: next != "", HasPrev: p.values.Has("cursor")}
	if next != "" {
		q := maps.Clone(p.values)
		q.Set("cursor", next)
		q.Set("limit", strconv.Itoa(p.limit(pageUsual, pageMost)))
		l.Links.Next = c.R.URL.Path + "?" + q.Encode()
	}
	return l
}

func (h *endpointHandlers) get(c *httpapi.Call) error {
	e, err := h.finder.named(c)
	if err != nil {
		return err
	}
	return h.show(c, e)
}

func (h *endpointHandlers) show(c *httpapi.Call, e *godwit.Endpoint) error {
	v, err := h.views.view(c.R.Context(), c, e)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, v)
}

// update changes the members that the request names (CCW-API-11).
func (h *endpointHandlers) update(c *httpapi.Call) error {
	e, err := h.finder.named(c)
	if err != nil {
		return err
	}
	f, err := readForm(c.Body, "url", "description", "events", "filter", "status")
	if err != nil {
		return err
	}
	edit, status := f.changes()
	if err := f.err(); err != nil {
		return err
	}
	if len(f.members) == 0 {
		return h.show(c, e)
	}
	giveBack, err := h.limits.update.take(c.R.Context(), c.W.Header(), c.Tenant())
	if err != nil {
		return err
	}
	if e, err = h.change(c, e, edit, status); err != nil {
		giveBack()
		return err
	}
	return h.show(c, e)
}

// changes reads the requested changes: of the endpoint's specification and of its status.
func (f *form) changes() (edit func(*management.EndpointSpec) error, status godwit.EndpointStatus) {
	given := management.EndpointSpec{URL: f.text("url"), Patterns: f.texts("events"), Filter: f.filter()}
	if !f.null("description") { // null clears it
		given.Description = f.text("description")
	}
	if f.has("status") {
		switch status = godwit.EndpointStatus(f.text("status")); status {
		case godwit.EndpointActive, godwit.EndpointPaused, godwit.EndpointDisabled:
		default:
			f.wrong("status", "must be active, paused or disabled")
		}
	}
	if !f.has("url") && !f.has("description") && !f.has("events") && !f.has("filter") {
		return nil, status
	}
	return func(spec *management.EndpointSpec) error {
		if f.has("url") {
			spec.URL = given.URL
		}
		if f.has("description") {
			spec.Description = given.Description
		}
		if f.has("events") {
			spec.Patterns = given.Patterns
		}
		if f.has("filter") {
			spec.Filter = refilter(spec.Filter, given.Filter)
		}
		return nil
	}, status
}

// refilter replaces the part of a filter that this API shows, and keeps the other part.
func refilter(old, given godwit.Filter) godwit.Filter {
	out := godwit.Filter{}
	for name, values := range old {
		if !ours(name) {
			out[name] = values
		}
	}
	maps.Copy(out, given)
	return out
}

// change applies the edit before the status, because only the edit can be refused.
func (h *endpointHandlers) change(c *httpapi.Call, e *godwit.Endpoint, edit func(*management.EndpointSpec) error, status godwit.EndpointStatus) (*godwit.Endpoint, error) {
	ctx, id := c.R.Context(), e.ID
	var err error
	if edit != nil {
		if e, err = h.endpoints.Update(ctx, c.Tenant(), id, godwit.Match{}, edit); err != nil {
			return nil, err
		}
	}
	switch status {
	case godwit.EndpointActive:
		return h.endpoints.Resume(ctx, c.Tenant(), id)
	case godwit.EndpointPaused:
		return h.endpoints.Pause(ctx, c.Tenant(), id, "")
	case godwit.EndpointDisabled:
		return h.endpoints.Disable(ctx, c.Tenant(), id, "")
	}
	return e, nil
}

func (h *endpointHandlers) delete(c *httpapi.Call) error {
	e, err := h.finder.named(c)
	if err != nil {
		return err
	}
	giveBack, err := h.limits.remove.take(c.R.Context(), c.W.Header(), c.Tenant())
	if err != nil {
		return err
	}
	if err := h.commands.DeleteEndpoint(c.R.Context(), h.api.CommandRequest(c.R, c.Caller), e.ID, godwit.Match{}); err != nil {
		giveBack()
		return err
	}
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}
