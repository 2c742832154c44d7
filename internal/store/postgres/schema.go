package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/store"
)

// ReadSchema returns the schema of a database, with version 0 if it has none. It changes nothing.
func ReadSchema(ctx context.Context, url string) (store.Schema, error) {
	list, err := migrations()
	if err != nil {
		return store.Schema{}, err
	}
	out := store.Schema{Current: len(list)}
	config, err := parseURL(url)
	if err != nil {
		return out, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return out, failed("connect to postgres", err)
	}
	defer conn.Close(ctx)
	found, err := readSchema(ctx, conn)
	out.Version = found.version
	out.Usable = err == nil && found.check(len(list)) == nil
	return out, err
}

// A schemaState is the schema of a database.
type schemaState struct {
	version int   // 0: none
	besides []int // of versions 1 and up, the oldest schema whose programs may run beside it; 0 if it does not say
}

// readSchema reads the state of the schema.
func readSchema(ctx context.Context, conn *pgx.Conn) (schemaState, error) {
	var there, saysBeside bool
	err := conn.QueryRow(ctx, `SELECT t IS NOT NULL, EXISTS (SELECT FROM pg_attribute WHERE attrelid = t AND attname = 'beside' AND NOT attisdropped)
		FROM to_regclass('schema_migrations') AS t`).Scan(&there, &saysBeside)
	if err != nil || !there {
		return schemaState{}, failed("look for the table of migrations", err)
	}
	beside := "0"
	if saysBeside {
		beside = "coalesce(beside, 0)"
	}
	r, err := conn.Query(ctx, `SELECT version, `+beside+` FROM schema_migrations ORDER BY version`)
	if err != nil {
		return schemaState{}, failed("read the schema version", err)
	}
	var s schemaState
	var oldest int
	_, err = pgx.ForEachRow(r, []any{&s.version, &oldest}, func() error {
		s.besides = append(s.besides, oldest)
		return nil
	})
	return s, failed("read the schema version", err)
}

// check refuses a schema that is newer than the program's, unless all of its later migrations say that the program may run
// beside them.
func (s schemaState) check(known int) error {
	if s.version <= known {
		return nil
	}
	usable := s.version == len(s.besides) // no gap
	for _, oldest := range s.besides[min(known, len(s.besides)):] {
		usable = usable && oldest > 0 && oldest <= known
	}
	if usable {
		return nil
	}
	return fmt.Errorf("%w: it has version %d and this program knows %d; run the release that wrote it, or a later one",
		store.ErrNewerSchema, s.version, known)
}
