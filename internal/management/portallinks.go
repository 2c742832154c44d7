package management

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// PortalSpec describes a portal link.
type PortalSpec struct {
	Name         string // shown in lists; may be empty
	Capabilities []godwit.Capability
	View         godwit.PortalView
	Life         time.Duration // of the link; 0: DefaultLinkLife
	SessionLife  time.Duration // of its session; 0: DefaultPortalLife
}

// Bounds of portal links.
const (
	DefaultLinkLife   = 10 * time.Minute
	LeastLinkLife     = 10 * time.Second
	MostLinkLife      = 7 * 24 * time.Hour
	DefaultPortalLife = 24 * time.Hour
	LeastPortalLife   = time.Minute
	MostPortalLife    = 30 * 24 * time.Hour
	maxReturnURL      = 2048
)

// Themes of a portal.
var Themes = []string{"light", "dark", "system"}

var startPage = regexp.MustCompile(`^[a-z0-9][a-z0-9/_-]{0,199}$`)

func (p *PortalSpec) check() error {
	var errs []error
	if p.Name != "" {
		errs = append(errs, checkName("name", p.Name))
	}
	if len(p.Capabilities) == 0 {
		errs = append(errs, fieldError("capabilities", "must name at least one of %v", godwit.AllCapabilities))
	}
	for i, c := range p.Capabilities {
		switch field := fmt.Sprintf("capabilities[%d]", i); {
		case !slices.Contains(godwit.AllCapabilities, c):
			errs = append(errs, fieldError(field, "must be one of %v", godwit.AllCapabilities))
		case slices.Contains(p.Capabilities[:i], c):
			errs = append(errs, fieldError(field, "is named twice"))
		}
	}
	if p.Life < LeastLinkLife || p.Life > MostLinkLife {
		errs = append(errs, fieldError("expires_in", "must be from %d to %d seconds", int(LeastLinkLife.Seconds()), int(MostLinkLife.Seconds())))
	}
	if p.SessionLife < LeastPortalLife || p.SessionLife > MostPortalLife {
		errs = append(errs, fieldError("session_expires_in", "must be from %d to %d seconds", int(LeastPortalLife.Seconds()), int(MostPortalLife.Seconds())))
	}
	if v := p.View; v.Theme != "" && !slices.Contains(Themes, v.Theme) {
		errs = append(errs, fieldError("theme", "must be one of %v", Themes))
	}
	if v := p.View.ReturnURL; v != "" {
		u, err := url.Parse(v)
		if err != nil || len(v) > maxReturnURL || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
			errs = append(errs, fieldError("return_url", "must be an http or https URL of at most %d characters", maxReturnURL))
		}
	}
	if v := p.View.StartPage; v != "" && !startPage.MatchString(v) {
		errs = append(errs, fieldError("start_page", "must be the path of a page in the portal, such as endpoints: lower-case letters, digits, - _ and /"))
	}
	return errors.Join(errs...)
}

// grants refuses capabilities that permit more than the caller may do itself: a link must not be a way around the scopes of the key that makes it.
func (p *PortalSpec) grants(by *Caller) error {
	for i, c := range p.Capabilities {
		for _, scope := range c.Needs() {
			if !by.Key.Has(scope) {
				return problem.Forbidden.In(fmt.Sprintf("capabilities[%d]", i), "%s cannot be granted: the caller lacks the scope %q, and a link permits only what its maker may do", c, scope)
			}
		}
	}
	return nil
}

// CreatePortalLink makes a link to the portal of the caller's tenant, and returns its code, which is not stored. An administrator or a key of the environment
// makes it for one of its tenants. The caller must have the scopes of all capabilities.
func (ss *Sessions) CreatePortalLink(ctx context.Context, by *Caller, spec PortalSpec) (*godwit.SignInLink, string, error) {
	defaultTo(&spec.Life, DefaultLinkLife)
	defaultTo(&spec.SessionLife, DefaultPortalLife)
	if err := spec.check(); err != nil {
		return nil, "", err
	}
	if err := spec.grants(by); err != nil {
		return nil, "", err
	}
	now, code := ss.now(), godwit.MintSignInCode()
	l := &godwit.SignInLink{
		ID: godwit.NewLinkID(now), Kind: godwit.PortalSession, Hash: godwit.HashToken(code), TenantID: by.Tenant.ID, Name: spec.Name,
		Capabilities: spec.Capabilities, View: spec.View, SessionLife: spec.SessionLife, CreatedAt: now, ExpiresAt: now.Add(spec.Life),
	}
	if by.Session == nil || !by.Session.KeyID.IsZero() {
		l.KeyID = by.Key.ID
	}
	if err := ss.store.CreateLink(ctx, l); err != nil {
		return nil, "", fmt.Errorf("create portal link: %w", err)
	}
	return l, code, nil
}

// PortalLink returns a portal link of the tenant.
func (ss *Sessions) PortalLink(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) (*godwit.SignInLink, error) {
	l, err := ss.store.Link(ctx, tenant, id)
	if err == nil && l.Kind != godwit.PortalSession {
		return nil, store.ErrNotFound
	}
	return l, err
}

// PortalLinks pages through the portal links of a tenant, also those that were used or have expired lately.
func (ss *Sessions) PortalLinks(ctx context.Context, tenant godwit.TenantID, p store.Page) ([]godwit.SignInLink, error) {
	return ss.store.ListLinks(ctx, tenant, p)
}

// RevokePortalLink removes a link and ends the session that was made from it.
func (ss *Sessions) RevokePortalLink(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) error {
	ended, err := ss.store.RevokeLink(ctx, tenant, id)
	if err != nil {
		return fmt.Errorf("revoke portal link: %w", err)
	}
	if ended != nil {
		ss.callers.cache.dropSession(ended.ID)
	}
	return nil
}
