package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/store"
)

// configuration has no versions: one process serves from the database, and applies its own changes before it answers.
type configuration struct{}

// ConfigVersion returns 0.
func (configuration) ConfigVersion(context.Context) (int64, error) { return 0, nil }

// ConfigChanges lists nothing.
func (configuration) ConfigChanges(context.Context, int64) (*store.ConfigChanges, error) {
	return &store.ConfigChanges{}, nil
}
