package app

import (
	"context"

	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/store/postgres"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// Schema holds the schema versions of a database and of this binary.
type Schema struct {
	Version int `json:"version"` // version of the database; 0 when it is empty
	Current int `json:"current"` // version of this binary
}

// ReadSchema reads the schema version of the database and changes nothing.
func ReadSchema(ctx context.Context, s *config.Storage) (Schema, error) {
	if s.Postgres() {
		version, current, err := postgres.ReadSchema(ctx, s.Store)
		return Schema{version, current}, err
	}
	version, current, err := sqlite.ReadSchema(ctx, DatabaseFile(s))
	return Schema{version, current}, err
}
