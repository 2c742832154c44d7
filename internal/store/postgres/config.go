package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/store"
)

// configIs fails the transaction unless the config version is the parameter that follows it.
const configIs = `SELECT expect(count(*), 1, '` + stateConfigBehind + `') FROM config_version WHERE one AND version = `

var checkConfig = prepared("config", configIs+`$1`)

// configuration tells what other nodes have changed. Triggers of the schema raise the version and list the changes.
type configuration struct{ *database }

// ConfigVersion returns the current version.
func (s *configuration) ConfigVersion(ctx context.Context) (version int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT version FROM config_version`).Scan(&version)
	return version, failed("read config version", err)
}

// ConfigChanges reads version and changes in one statement, and so in one snapshot. The changes of the given version are read
// too: if they are missing, the database does not know the version.
func (s *configuration) ConfigChanges(ctx context.Context, since int64) (*store.ConfigChanges, error) {
	r, err := s.pool.Query(ctx, `SELECT v.version, coalesce(c.version, 0), coalesce(c.kind, ''), c.id, c.tenant_id, coalesce(c.name, '')
		FROM config_version AS v LEFT JOIN config_changes AS c ON c.version >= $1 ORDER BY c.version`, since)
	if err != nil {
		return nil, failed("read config changes", err)
	}
	changes := &store.ConfigChanges{Unknown: true}
	var of int64
	var c store.ConfigChange
	fields := []any{&changes.Version, &of, &c.Kind, scanID(&c.ID), scanID(&c.TenantID), &c.Name}
	_, err = pgx.ForEachRow(r, fields, func() error {
		if of == since {
			changes.Unknown = false
		} else if !changes.Unknown {
			changes.List = append(changes.List, c)
		}
		return nil
	})
	if err != nil {
		return nil, failed("read config changes", err)
	}
	return changes, nil
}
