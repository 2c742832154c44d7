package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/godwit-hq/godwit/internal/store"
)

// ReadSchema returns the schema of a database file, with version 0 if it has none. It changes nothing.
func ReadSchema(ctx context.Context, path string) (out store.Schema, err error) {
	all, err := migrations()
	if err != nil {
		return out, err
	}
	out = store.Schema{Current: len(all), Usable: true}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	c, err := connect(ctx, path, "query_only(ON)")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	out.Version, err = schemaVersion(ctx, c)
	out.Usable = out.Version <= out.Current
	return out, err
}

// CurrentSchema returns the schema version that this program writes.
func CurrentSchema() (int, error) {
	all, err := migrations()
	return len(all), err
}
