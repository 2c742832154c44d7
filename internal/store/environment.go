package store

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Environments keeps environments.
type Environments interface {
	// CreateEnvironment stores an environment and its home tenant. It fails with ErrConflict when the id or the uid is taken.
	CreateEnvironment(ctx context.Context, e *godwit.Environment) error
	// UpdateEnvironment changes uid, name and settings, and raises the version. It fails with ErrConflict when the stored version is
	// not e.Version, or when the uid is taken. It sets e.Version.
	UpdateEnvironment(ctx context.Context, e *godwit.Environment) error
	// DeleteEnvironment marks the environment and its home tenant as deleted, and revokes its keys. It fails with ErrConflict while
	// the environment has tenants, or when the stored version is not e.Version.
	DeleteEnvironment(ctx context.Context, e *godwit.Environment) error
	// Environment returns an environment that is not deleted.
	Environment(ctx context.Context, id godwit.EnvironmentID) (*godwit.Environment, error)
	EnvironmentByUID(ctx context.Context, uid string) (*godwit.Environment, error)
	// EnvironmentKeys lists the signing keys of environments that are not deleted, newest first, including expired ones: of one
	// environment, or of all if the id is zero.
	EnvironmentKeys(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)
	// AddFirstKey stores the first signing key of an environment. It fails with ErrConflict if there is one. Further keys come by
	// IssueSecret.
	AddFirstKey(ctx context.Context, key *godwit.Secret) error
	// ListEnvironments leaves out deleted environments.
	ListEnvironments(ctx context.Context, p Page) ([]godwit.Environment, error)
}
