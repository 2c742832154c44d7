//go:build unix

package sqlite

import (
	"errors"
	"os"
)

// SyncDirectory makes the entries of a directory survive a power failure.
func SyncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
