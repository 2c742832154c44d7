package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// EnvironmentSpec describes an environment.
type EnvironmentSpec struct {
	UID  string
	Name string
	godwit.EnvironmentSettings
}

func (s *EnvironmentSpec) check() error {
	errs := []error{checkUID("uid", s.UID), checkName("name", s.Name), checkAlertEmails(s.AlertEmails), checkValidation(s.Validation)}
	base, err := profile.Lookup(cmp.Or(s.Profile, profile.Default))
	if err != nil {
		errs = append(errs, fieldError("endpoint_profile", "must be one of %v", profile.Names()))
	} else if _, err := s.Policy.Apply(base.Defaults()); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Environments manages environments.
type Environments struct {
	store store.Environments
	cache *callerCache
	now   func() time.Time
}

// Create creates an environment, without tenants and keys.
func (es *Environments) Create(ctx context.Context, spec EnvironmentSpec) (*godwit.Environment, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	now := es.now()
	return idempotency.Once(ctx, now,
		func(id godwit.EnvironmentID) (*godwit.Environment, error) { return es.store.Environment(ctx, id) },
		func(id godwit.EnvironmentID) (*godwit.Environment, error) {
			e := &godwit.Environment{
				ID: id, UID: spec.UID, Name: spec.Name, EnvironmentSettings: spec.EnvironmentSettings, Version: 1, CreatedAt: now, UpdatedAt: now,
			}
			err := es.store.CreateEnvironment(ctx, e)
			if errors.Is(err, store.ErrConflict) {
				if other, err := es.store.EnvironmentByUID(ctx, e.UID); err == nil && other.ID != id {
					return nil, problem.Conflict.With("there is an environment with the uid %q already", e.UID)
				}
			}
			return e, err
		})
}

// Get returns the environment with an id or uid.
func (es *Environments) Get(ctx context.Context, named string) (*godwit.Environment, error) {
	if id, err := godwit.ParseEnvironmentID(named); err == nil {
		return es.store.Environment(ctx, id)
	}
	return es.store.EnvironmentByUID(ctx, named)
}

// List pages through all environments.
func (es *Environments) List(ctx context.Context, p store.Page) ([]godwit.Environment, error) {
	return es.store.ListEnvironments(ctx, p)
}

// Update applies edit to an environment.
func (es *Environments) Update(ctx context.Context, named string, edit func(*EnvironmentSpec) error) (*godwit.Environment, error) {
	e, err := es.Get(ctx, named)
	if err != nil {
		return nil, err
	}
	spec := EnvironmentSpec{UID: e.UID, Name: e.Name, EnvironmentSettings: e.EnvironmentSettings}
	if err := edit(&spec); err != nil {
		return nil, err
	}
	return es.change(ctx, e, spec)
}

// change stores an environment with other settings.
func (es *Environments) change(ctx context.Context, e *godwit.Environment, spec EnvironmentSpec) (*godwit.Environment, error) {
	if spec.Live != e.Live {
		return nil, fieldError("live", "cannot change: a retry has the bytes of the first attempt, and these say whether the environment is live")
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	e.UID, e.Name, e.EnvironmentSettings, e.UpdatedAt = spec.UID, spec.Name, spec.EnvironmentSettings, es.now()
	if err := es.store.UpdateEnvironment(ctx, e); errors.Is(err, store.ErrConflict) {
		return nil, problem.Conflict.With("another environment has the uid %q, or this one was changed meanwhile", e.UID)
	} else if err != nil {
		return nil, fmt.Errorf("update environment: %w", err)
	}
	es.cache.dropAll() // its settings are part of all its tenants
	return e, nil
}

// Delete deletes an environment without tenants.
func (es *Environments) Delete(ctx context.Context, named string) error {
	e, err := es.Get(ctx, named)
	if err != nil {
		return err
	}
	if e.ID == godwit.DefaultEnvironment {
		return problem.Conflict.With("the first environment cannot be deleted: tenants that name no environment belong to it")
	}
	e.DeletedAt = es.now()
	if err := es.store.DeleteEnvironment(ctx, e); errors.Is(err, store.ErrConflict) {
		return problem.Conflict.With("the environment has tenants, or was changed meanwhile; delete its tenants first")
	} else if err != nil {
		return fmt.Errorf("delete environment: %w", err)
	}
	es.cache.dropAll()
	return nil
}
