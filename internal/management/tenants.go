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
	"github.com/godwit-hq/godwit/internal/store"
)

// MaxName is the maximum length of the name of a tenant or key, in characters.
const MaxName = 100

// TenantSpec holds the settings of a tenant that its owner chooses.
type TenantSpec struct {
	Name                  string
	RequireIdempotencyKey bool
	AlertEmails           []string
	Validation            godwit.Validation
}

// MaxAlertEmails is the maximum number of addresses for a tenant's alerts.
const MaxAlertEmails = 10

func (s *TenantSpec) check() error {
	errs := []error{checkName("name", s.Name)}
	if len(s.AlertEmails) > MaxAlertEmails {
		errs = append(errs, fieldError("alert_emails", "must have at most %d addresses", MaxAlertEmails))
	}
	for i, address := range s.AlertEmails {
		field := fmt.Sprintf("alert_emails[%d]", i)
		if !validEmail(address) {
			errs = append(errs, fieldError(field, "must be an e-mail address, as in ops@example.com"))
		} else if slices.ContainsFunc(s.AlertEmails[:i], func(other string) bool { return strings.EqualFold(other, address) }) {
			errs = append(errs, fieldError(field, "is given twice"))
		}
	}
	switch s.Validation {
	case godwit.ValidateNone, godwit.ValidateKnown, godwit.ValidateStrict:
	default:
		errs = append(errs, fieldError("event_validation", "must be empty, %q or %q", godwit.ValidateKnown, godwit.ValidateStrict))
	}
	return errors.Join(errs...)
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

// Create creates a tenant, without keys.
func (ts *Tenants) Create(ctx context.Context, spec TenantSpec) (*godwit.Tenant, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	now := ts.now()
	return idempotency.Once(ctx, now,
		func(id godwit.TenantID) (*godwit.Tenant, error) { return ts.store.Tenant(ctx, id) },
		func(id godwit.TenantID) (*godwit.Tenant, error) {
			t := &godwit.Tenant{ID: id, CreatedAt: now}
			spec.apply(t)
			return t, withCode(&t.Code, "create tenant", func() error { return ts.store.CreateTenant(ctx, t) })
		})
}

func (s *TenantSpec) apply(t *godwit.Tenant) {
	t.Name, t.RequireIdempotencyKey, t.AlertEmails, t.Validation = s.Name, s.RequireIdempotencyKey, s.AlertEmails, s.Validation
}

// Get returns a tenant.
func (ts *Tenants) Get(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	return ts.store.Tenant(ctx, id)
}

// List pages through all tenants.
func (ts *Tenants) List(ctx context.Context, p store.Page) ([]godwit.Tenant, error) {
	return ts.store.ListTenants(ctx, p)
}

// Update applies edit to a tenant.
func (ts *Tenants) Update(ctx context.Context, id godwit.TenantID, edit func(*TenantSpec) error) (*godwit.Tenant, error) {
	t, err := ts.store.Tenant(ctx, id)
	if err != nil {
		return nil, err
	}
	spec := TenantSpec{
		Name: t.Name, RequireIdempotencyKey: t.RequireIdempotencyKey, AlertEmails: t.AlertEmails, Validation: t.Validation,
	}
	if err := edit(&spec); err != nil {
		return nil, err
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	spec.apply(t)
	if err := ts.store.UpdateTenant(ctx, t); err != nil {
		return nil, fmt.Errorf("update tenant: %w", err)
	}
	ts.cache.dropTenant(id)
	return t, nil
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
