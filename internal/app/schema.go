package app

import (
	"context"

	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/postgres"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// ReadSchema reads the schema version of the database and changes nothing.
func ReadSchema(ctx context.Context, s *config.Storage) (store.Schema, error) {
	if s.Postgres() {
		return postgres.ReadSchema(ctx, s.Store)
	}
	return sqlite.ReadSchema(ctx, DatabaseFile(s))
}
