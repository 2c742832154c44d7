package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// ReadSchema returns the schema version of a database file, 0 if it has none, and the version that this program knows. It
// changes nothing.
func ReadSchema(ctx context.Context, path string) (version, current int, err error) {
	all, err := migrations()
	if err != nil {
		return 0, 0, err
	}
	current = len(all)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, current, nil
	}
	c, err := connect(ctx, path, "query_only(ON)")
	if err != nil {
		return 0, current, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	version, err = schemaVersion(ctx, c)
	return version, current, err
}
