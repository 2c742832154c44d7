package source

import (
	"cmp"
	"context"
	"errors"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Find finds a source of the tenant by its id or name.
func (s *Sources) Find(ctx context.Context, t *godwit.Tenant, named string) (*godwit.Source, error) {
	if id, err := godwit.ParseSourceID(named); err == nil {
		return s.cfg.Store.Source(ctx, t.ID, id)
	}
	return s.cfg.Store.SourceNamed(ctx, t.Code, named)
}

// Put creates the source with a name, or replaces the settings of the one that there is; named may also be its id. made reports whether it
// was created; only then do the credentials of the specification have an effect.
func (s *Sources) Put(ctx context.Context, t *godwit.Tenant, named string, spec Spec, m godwit.Match, permit Permit) (src *godwit.Source, issued *Issued, made bool, err error) {
	for try := 1; ; try++ {
		found, err := s.Find(ctx, t, named)
		if err == nil {
			src, err := s.replace(ctx, found, spec, m, permit)
			if errors.Is(err, store.ErrNotFound) && try < changeTries {
				continue // it was deleted meanwhile
			}
			return src, nil, false, err
		}
		if _, foreign := godwit.ParseSourceID(named); !errors.Is(err, store.ErrNotFound) || foreign == nil {
			return nil, nil, false, err
		}
		if err := expect(m, 0); err != nil {
			return nil, nil, false, err
		}
		spec.Name = named
		src, issued, err = s.Create(ctx, t.ID, spec, permit)
		if err == nil || try == changeTries || !errors.Is(err, problem.Conflict) {
			return src, issued, err == nil, err
		}
		// Another request was first to create it.
	}
}

func (s *Sources) replace(ctx context.Context, found *godwit.Source, spec Spec, m godwit.Match, permit Permit) (*godwit.Source, error) {
	spec.Name, spec.Credentials = cmp.Or(spec.Name, found.Name), nil
	spec.setDefaults()
	return s.edit(ctx, found.TenantID, found.ID, func(before *godwit.Source) (*Spec, error) {
		return &spec, expect(m, before.Version)
	}, permit)
}

func expect(m godwit.Match, version int64) error {
	if m.Holds(version) {
		return nil
	}
	return problem.PreconditionFailed.With("the source is not as the request expects: its version is %d", version)
}
