package source

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
)

// Rotation bounds, the same as for endpoints.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 7 * 24 * time.Hour
)

// Rotate adds a credential, the given one or a new one, and lets the others expire after the overlap. The holder of a
// credential of a source that submits commands can submit commands, so a rotation needs a permit like any other change.
func (s *Sources) Rotate(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, given *godwit.Credential, overlap time.Duration, permit Permit) (*godwit.Source, *Issued, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return nil, nil, fieldError("overlap_seconds", "must be between 0 and %g", MaxOverlap.Seconds())
	}
	var issued *Issued
	src, err := s.change(ctx, tenant, id, func(src *godwit.Source) error {
		now := s.now()
		if err := permit.allow(src, src); err != nil {
			return err
		}
		spec := Spec{Scheme: src.Scheme}
		if given != nil {
			spec.Credentials = []godwit.Credential{*given}
		}
		fresh, made, err := s.credentials(ctx, &spec, now)
		if err != nil {
			return err
		}
		issued = made
		list, err := s.open(src)
		if err != nil {
			return err
		}
		if there := added(ctx, list, &fresh[0], given != nil && given.ID != ""); there != nil {
			if issued != nil {
				issued.Secret = there.Secret
			}
			return errUnchanged
		}
		end := now.Add(s.cfg.TimeScale.Real(overlap))
		for i := range list {
			if list[i].ExpiresAt.IsZero() || list[i].ExpiresAt.After(end) {
				list[i].ExpiresAt = end
			}
		}
		return s.seal(src, append(fresh, list...), now)
	})
	return src, issued, err
}

// added finds the credential that an interrupted rotation under the same key added; nil if there is none. An id that the server
// made follows from the key. One that the caller chose may also be there for another reason.
func added(ctx context.Context, list []godwit.Credential, c *godwit.Credential, named bool) *godwit.Credential {
	for i := range list {
		there := &list[i]
		if there.ID == c.ID && (!named || idempotency.Again(ctx) && there.Secret == c.Secret && there.PublicKey == c.PublicKey) {
			return there
		}
	}
	return nil
}
