package management

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// MaxName is the maximum length of the name of a tenant or key, in characters.
const MaxName = 100

// TenantSpec holds the settings of a tenant that its owner chooses.
type TenantSpec struct {
	UID                   string // empty: none
	Name                  string
	RequireIdempotencyKey bool
	AlertEmails           []string
	Validation            godwit.Validation
	Limits                godwit.TenantLimits
	// Inherits names the settings that the tenant has from its environment; their members above do not count.
	Inherits []godwit.Setting
}

// MaxAlertEmails is the maximum number of addresses for the alerts of a tenant or environment.
const MaxAlertEmails = 10

func (s *TenantSpec) check() error {
	return errors.Join(checkOptionalUID("uid", s.UID), checkName("name", s.Name), checkAlertEmails(s.AlertEmails), checkValidation(s.Validation),
		checkLimits(&s.Limits))
}

func checkAlertEmails(addresses []string) error {
	var errs []error
	if len(addresses) > MaxAlertEmails {
		errs = append(errs, fieldError("alert_emails", "must have at most %d addresses", MaxAlertEmails))
	}
	for i, address := range addresses {
		field := fmt.Sprintf("alert_emails[%d]", i)
		if !validEmail(address) {
			errs = append(errs, fieldError(field, "must be an e-mail address, as in ops@example.com"))
		} else if slices.ContainsFunc(addresses[:i], func(other string) bool { return strings.EqualFold(other, address) }) {
			errs = append(errs, fieldError(field, "is given twice"))
		}
	}
	return errors.Join(errs...)
}

func checkValidation(v godwit.Validation) error {
	switch v {
	case godwit.ValidateNone, godwit.ValidateKnown, godwit.ValidateStrict:
		return nil
	}
	return fieldError("event_validation", "must be empty, %q or %q", godwit.ValidateKnown, godwit.ValidateStrict)
}

// validEmail accepts a bare address that is safe in an SMTP command, so that it cannot name a second recipient.
func validEmail(address string) bool {
	const longest = 254 // RFC 5321
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Name != "" || parsed.Address != address || len(address) > longest {
		return false
	}
	return !strings.ContainsFunc(address, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '<' || c == '>' || c == '"' })
}

// Tenants manages tenants.
type Tenants struct {
	store     store.Tenants
	cache     *callerCache
	endpoints *notifier
	now       func() time.Time
}

// Create creates a tenant of an environment, without keys.
func (ts *Tenants) Create(ctx context.Context, environment godwit.EnvironmentID, spec TenantSpec) (*godwit.Tenant, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	now := ts.now()
	return idempotency.Once(ctx, now,
		func(id godwit.TenantID) (*godwit.Tenant, error) { return ts.store.Tenant(ctx, id) },
		func(id godwit.TenantID) (*godwit.Tenant, error) {
			t := &godwit.Tenant{ID: id, EnvironmentID: environment, CreatedAt: now}
			spec.apply(t)
			if err := ts.uidFree(ctx, t); err != nil {
				return nil, err
			}
			if err := withCode(&t.Code, "create tenant", func() error { return ts.store.CreateTenant(ctx, t) }); err != nil {
				return nil, err
			}
			return ts.store.Tenant(ctx, id) // with what its environment lends
		})
}

// uidFree refuses the uid of another tenant. The store does so too, where two requests pass each other.
func (ts *Tenants) uidFree(ctx context.Context, t *godwit.Tenant) error {
	if t.UID == "" {
		return nil
	}
	other, err := ts.store.TenantByUID(ctx, t.EnvironmentID, t.UID)
	switch {
	case err == nil && other.ID != t.ID: // it may be this one, stored by a request that was interrupted
		return problem.Conflict.With("there is a tenant with the uid %q already in this environment", t.UID)
	case err == nil, errors.Is(err, store.ErrNotFound):
		return nil
	}
	return fmt.Errorf("find uid: %w", err)
}

func (s *TenantSpec) apply(t *godwit.Tenant) {
	t.UID, t.Name, t.RequireIdempotencyKey, t.AlertEmails, t.Validation = s.UID, s.Name, s.RequireIdempotencyKey, s.AlertEmails, s.Validation
	t.Inherits, t.Limits = s.Inherits, s.Limits
}

// Get returns a tenant.
func (ts *Tenants) Get(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	return ts.store.Tenant(ctx, id)
}

// Find returns the tenant of an environment with an id or uid. A home is no tenant here.
func (ts *Tenants) Find(ctx context.Context, environment godwit.EnvironmentID, named string) (*godwit.Tenant, error) {
	return findTenant(ctx, ts.store, environment, named)
}

// List pages through the tenants of an environment, or of all environments if it is zero.
func (ts *Tenants) List(ctx context.Context, environment godwit.EnvironmentID, p store.Page) ([]godwit.Tenant, error) {
	return ts.store.ListTenants(ctx, store.TenantFilter{Environment: environment}, p)
}

// Health returns how tenants do, in their order, with up to upTo waiting deliveries of each.
func (ts *Tenants) Health(ctx context.Context, tenants []godwit.TenantID, upTo int) ([]store.TenantHealth, error) {
	return ts.store.TenantsHealth(ctx, tenants, upTo)
}

// Search pages through the tenants whose name or uid contains a text.
func (ts *Tenants) Search(ctx context.Context, environment godwit.EnvironmentID, text string, p store.Page) ([]godwit.Tenant, error) {
	return ts.store.ListTenants(ctx, store.TenantFilter{Environment: environment, Text: text}, p)
}

// Update applies edit to a tenant that is as the request expects, and again if a concurrent change came first. A tenant that
// is as edit would make it stays, with its version.
func (ts *Tenants) Update(ctx context.Context, id godwit.TenantID, m godwit.Match, edit func(*TenantSpec) error) (*godwit.Tenant, error) {
	for try := 1; ; try++ {
		t, err := ts.store.Tenant(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := expect(m, t.Version); err != nil {
			return nil, err
		}
		next, err := ts.edited(ctx, t, edit)
		if err != nil {
			return nil, err
		}
		if equalTenants(t.WithoutLent(), next.WithoutLent()) {
			return t, nil
		}
		err = ts.store.UpdateTenant(ctx, next)
		if errors.Is(err, store.ErrConflict) && try < changeTries {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("update tenant: %w", err)
		}
		ts.cache.dropTenant(id)
		return ts.store.Tenant(ctx, id)
	}
}

// edited returns the tenant as edit makes it.
func (ts *Tenants) edited(ctx context.Context, t *godwit.Tenant, edit func(*TenantSpec) error) (*godwit.Tenant, error) {
	spec := TenantSpec{
		UID: t.UID, Name: t.Name, RequireIdempotencyKey: t.RequireIdempotencyKey, AlertEmails: t.AlertEmails, Validation: t.Validation,
		Inherits: t.Inherits, Limits: t.Limits,
	}
	if err := edit(&spec); err != nil {
		return nil, err
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	next := *t
	spec.apply(&next)
	if next.UID == t.UID {
		return &next, nil
	}
	return &next, ts.uidFree(ctx, &next)
}

// Deleted reacts to the stored deletion of a tenant and its endpoints.
func (ts *Tenants) Deleted(ctx context.Context, id godwit.TenantID, endpoints []godwit.EndpointID) {
	ts.cache.dropTenant(id)
	for _, e := range endpoints {
		ts.endpoints.changed(ctx, e)
	}
}

func checkName(field, name string) error {
	if name == "" {
		return fieldError(field, "must not be empty")
	}
	return checkText(field, name, MaxName)
}

// checkText accepts one line of bounded length without control characters.
func checkText(field, text string, limit int) error {
	if !utf8.ValidString(text) {
		return fieldError(field, "must be valid UTF-8")
	}
	if utf8.RuneCountInString(text) > limit {
		return fieldError(field, "must have at most %d characters", limit)
	}
	for _, c := range text {
		if unicode.IsControl(c) {
			return fieldError(field, "must not hold control characters")
		}
	}
	return nil
}

func fieldError(field, format string, args ...any) *godwit.FieldError {
	return &godwit.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}
