package management

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/godwit"
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

// CreateTenant creates a tenant, without keys.
func (r *Service) CreateTenant(ctx context.Context, spec TenantSpec) (*godwit.Tenant, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	now := r.now()
	t := &godwit.Tenant{ID: godwit.NewTenantID(now), CreatedAt: now}
	spec.apply(t)
	if err := withCode(&t.Code, "create tenant", func() error { return r.store.CreateTenant(ctx, t) }); err != nil {
		return nil, err
	}
	return t, nil
}

func (s *TenantSpec) apply(t *godwit.Tenant) {
	t.Name, t.RequireIdempotencyKey, t.AlertEmails, t.Validation = s.Name, s.RequireIdempotencyKey, s.AlertEmails, s.Validation
}

// Tenant returns a tenant.
func (r *Service) Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	return r.store.Tenant(ctx, id)
}

// ListTenants pages through all tenants.
func (r *Service) ListTenants(ctx context.Context, p store.Page) ([]godwit.Tenant, error) {
	return r.store.ListTenants(ctx, p)
}

// UpdateTenant applies edit to a tenant.
func (r *Service) UpdateTenant(ctx context.Context, id godwit.TenantID, edit func(*TenantSpec) error) (*godwit.Tenant, error) {
	t, err := r.store.Tenant(ctx, id)
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
	if err := r.store.UpdateTenant(ctx, t); err != nil {
		return nil, fmt.Errorf("update tenant: %w", err)
	}
	r.cache.dropTenant(id)
	return t, nil
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
