//go:build unix

package sqlite

import (
	"errors"
	"os"
)

// syncDirectory makes the entries of a directory survive a power failure.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
