package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
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
	Portal godwit.Portal
}

func (s *EnvironmentSpec) check() error {
	errs := []error{checkUID("uid", s.UID), checkName("name", s.Name), checkAlertEmails(s.AlertEmails), checkValidation(s.Validation), checkLimits(&s.Limits), checkPortal(&s.Portal)}
	base, err := profile.Lookup(cmp.Or(s.Profile, profile.Default))
	if err != nil {
		errs = append(errs, fieldError("endpoint_profile", "must be one of %v", profile.Names()))
	} else if _, err := s.Policy.Apply(base.Defaults()); err != nil {
		errs = append(errs, err)
	}
	if s.Signing != godwit.SigningOwn && s.Signing != godwit.SigningEnvironment {
		errs = append(errs, fieldError("endpoint_signing", "must be own or environment"))
	}
	return errors.Join(errs...)
}

// Environments manages environments.
type Environments struct {
	store store.Environments
	cache *callerCache
	now   func() time.Time
	fresh func(context.Context) error
	// portals holds environments for the pages of portals.
	portals *portalCache
	// How long the server keeps events and dead letters.
	events, deadLetters time.Duration
}

// checkRetention bounds the retention of an environment by the server's. A value that it has already stays allowed when the server's becomes
// shorter; the shorter one is in force.
func (es *Environments) checkRetention(spec, before *godwit.EnvironmentSettings) error {
	check := func(seconds, had int64, field string, server time.Duration, setting string) error {
		least, most := int64(godwit.MinRetention.Seconds()), int64(server.Seconds())
		if seconds == 0 || seconds == had || seconds >= least && seconds <= most {
			return nil
		}
		return fieldError(field, "must be between %d and %d, which is the server's --%s, or 0 for the server's", least, most, setting)
	}
	return errors.Join(
		check(spec.KeepEvents, before.KeepEvents, "retention_events_seconds", es.events, "retention-events"),
		check(spec.KeepDeadLetters, before.KeepDeadLetters, "retention_dead_letters_seconds", es.deadLetters, "retention-dead-letters"))
}

// Create creates an environment, without tenants and keys.
func (es *Environments) Create(ctx context.Context, spec EnvironmentSpec) (*godwit.Environment, error) {
	if err := errors.Join(spec.check(), es.checkRetention(&spec.EnvironmentSettings, &godwit.EnvironmentSettings{})); err != nil {
		return nil, err
	}
	now := es.now()
	return idempotency.Once(ctx, now,
		func(id godwit.EnvironmentID) (*godwit.Environment, error) { return es.store.Environment(ctx, id) },
		func(id godwit.EnvironmentID) (*godwit.Environment, error) {
			e := &godwit.Environment{
				ID: id, UID: spec.UID, Name: spec.Name, EnvironmentSettings: spec.EnvironmentSettings, Portal: spec.Portal, Version: 1, CreatedAt: now, UpdatedAt: now,
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

// Update applies edit to an environment that is as the request expects, and again if a concurrent change came first. An environment
// that is as edit would make it stays, with its version.
func (es *Environments) Update(ctx context.Context, named string, m godwit.Match, edit func(*EnvironmentSpec) error) (*godwit.Environment, error) {
	for try := 1; ; try++ {
		e, err := es.Get(ctx, named)
		if err != nil {
			return nil, err
		}
		if err := expect(m, e.Version); err != nil {
			return nil, err
		}
		next, err := es.edited(ctx, e, edit)
		if err != nil {
			return nil, err
		}
		if next.UID == e.UID && next.Name == e.Name && equalSettings(next.EnvironmentSettings, e.EnvironmentSettings) && equalPortals(next.Portal, e.Portal) {
			return e, nil
		}
		err = es.store.UpdateEnvironment(ctx, next)
		if errors.Is(err, store.ErrConflict) && try < changeTries {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("update environment: %w", err)
		}
		es.dropped()
		return next, nil
	}
}

// edited returns the environment as edit makes it.
func (es *Environments) edited(ctx context.Context, e *godwit.Environment, edit func(*EnvironmentSpec) error) (*godwit.Environment, error) {
	spec := EnvironmentSpec{UID: e.UID, Name: e.Name, EnvironmentSettings: e.EnvironmentSettings, Portal: e.Portal}
	if err := edit(&spec); err != nil {
		return nil, err
	}
	if spec.Live != e.Live {
		return nil, fieldError("live", "cannot change: a retry has the bytes of the first attempt, and these say whether the environment is live")
	}
	if err := errors.Join(spec.check(), es.checkRetention(&spec.EnvironmentSettings, &e.EnvironmentSettings)); err != nil {
		return nil, err
	}
	if spec.UID != e.UID {
		if other, err := es.store.EnvironmentByUID(ctx, spec.UID); err == nil && other.ID != e.ID {
			return nil, problem.Conflict.With("another environment has the uid %q", spec.UID)
		}
	}
	next := *e
	next.UID, next.Name, next.EnvironmentSettings, next.Portal, next.UpdatedAt = spec.UID, spec.Name, spec.EnvironmentSettings, spec.Portal, es.now()
	return &next, nil
}

// equalSettings compares settings; a list that is empty equals one that is missing.
func equalSettings(a, b godwit.EnvironmentSettings) bool {
	normal := func(s godwit.EnvironmentSettings) godwit.EnvironmentSettings {
		if len(s.AlertEmails) == 0 {
			s.AlertEmails = nil
		}
		if len(s.Policy.Statuses) == 0 {
			s.Policy.Statuses = nil
		}
		return s
	}
	return reflect.DeepEqual(normal(a), normal(b))
}

func equalPortals(a, b godwit.Portal) bool {
	normal := func(p godwit.Portal) godwit.Portal {
		if len(p.AllowedOrigins) == 0 {
			p.AllowedOrigins = nil
		}
		return p
	}
	return reflect.DeepEqual(normal(a), normal(b))
}

// Delete deletes an environment without tenants that is as the request expects.
func (es *Environments) Delete(ctx context.Context, named string, m godwit.Match) error {
	e, err := es.Get(ctx, named)
	if err != nil {
		return err
	}
	if err := expect(m, e.Version); err != nil {
		return err
	}
	if e.ID == godwit.DefaultEnvironment {
		return problem.Conflict.With("the first environment cannot be deleted: tenants that name no environment belong to it")
	}
	e.DeletedAt = es.now()
	if err := es.store.DeleteEnvironment(ctx, e); errors.Is(err, store.ErrConflict) {
		if now, err := es.Get(ctx, named); err == nil { // the store compares the version in its transaction
			if err := expect(m, now.Version); err != nil {
				return err
			}
		}
		return problem.Conflict.With("the environment has tenants, or was changed meanwhile; delete its tenants first")
	} else if err != nil {
		return fmt.Errorf("delete environment: %w", err)
	}
	es.dropped()
	return nil
}

// dropped forgets what memory holds of environments, after a change.
func (es *Environments) dropped() {
	es.cache.dropAll() // its settings are part of all its tenants
	es.portals.drop()
}
