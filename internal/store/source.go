package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Sources keeps inbound sources, their acknowledgments and their rejected requests.
type Sources interface {
	// CreateSource fails with ErrConflict when the id is taken, or when another live source of the tenant has the name.
	CreateSource(ctx context.Context, s *godwit.Source) error
	// UpdateSource stores s if the stored version is s.Version-1. It fails with ErrConflict when the version differs or the
	// name is taken, and with ErrNotFound when the source is deleted. Tenant, scheme and creation time do not change.
	UpdateSource(ctx context.Context, s *godwit.Source) error
	// Source returns a source that is not deleted.
	Source(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID) (*godwit.Source, error)
	// SourceAt returns a source by id for an inbound request. Neither the source nor its tenant may be deleted.
	SourceAt(ctx context.Context, id godwit.SourceID) (*godwit.Source, error)
	// SourceNamed does the same by the code of the tenant and the name of the source.
	SourceNamed(ctx context.Context, account, name string) (*godwit.Source, error)
	// ListSources leaves out deleted sources.
	ListSources(ctx context.Context, f SourceFilter, p Page) ([]godwit.Source, error)
	// ReceivedAt notes when a source received a request. An earlier time than the stored one changes nothing, and neither does the version.
	ReceivedAt(ctx context.Context, id godwit.SourceID, at time.Time) error
	CountSources(ctx context.Context, tenant godwit.TenantID) (int, error)
	// AddAcknowledgment fails with ErrConflict when the id is taken.
	AddAcknowledgment(ctx context.Context, a *godwit.Acknowledgment) error
	ListAcknowledgments(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p Page) ([]godwit.Acknowledgment, error)
	// AddRejection stores a rejection and keeps only the newest keep rejections of its source.
	AddRejection(ctx context.Context, r *godwit.Rejection, keep int) error
	ListRejections(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p Page) ([]godwit.Rejection, error)
}

// SourceFilter chooses the sources of one tenant, or of all tenants of an environment if that is given.
type SourceFilter struct {
	TenantID    godwit.TenantID
	Environment godwit.EnvironmentID // not zero: TenantID does not count
}
