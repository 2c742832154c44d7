package app

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/keyring"
)

// OpenRing finds the key ring: in the setting, in the named file, or in the data directory. With the embedded store it
// creates the ring the first time. Nodes on PostgreSQL share secrets, so there the operator provides it.
func OpenRing(s *config.Storage, log *slog.Logger) (*keyring.Ring, error) {
	if s.Keyring != "" {
		return keyring.Parse(s.Keyring)
	}
	path := s.KeyringFile
	if path == "" {
		path = filepath.Join(s.Data, "keyring")
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeRing(s, path, log)
	case err != nil:
		return nil, fmt.Errorf("read key ring: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("key ring can be read by other users of this machine; chmod 600 it", "file", path)
	}
	ring, err := keyring.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

func makeRing(s *config.Storage, path string, log *slog.Logger) (*keyring.Ring, error) {
	if s.Postgres() {
		if s.KeyringFile != "" {
			return nil, fmt.Errorf("key ring %s does not exist; all nodes on a PostgreSQL store need the same one, so none is made", path)
		}
		return nil, fmt.Errorf("no key ring: all nodes on a PostgreSQL store need the same one; make it once with `godwit keys ring > keyring` "+
			"and give it to each as --keyring-file or %sKEYRING", config.EnvPrefix)
	}
	// The ring is created before the database, so a database without a ring has lost it; a new ring would not open its
	// values.
	if _, err := os.Stat(DatabaseFile(s)); err == nil {
		return nil, fmt.Errorf("key ring %s is missing, but %s exists and holds secrets that only that ring opens; restore it from your backup", path, DatabaseFile(s))
	}
	text := keyring.Generate(newRingID()) + "\n"
	if err := writeOnce(path, text); err != nil {
		return nil, fmt.Errorf("write key ring: %w", err)
	}
	log.Warn("made a key ring; back it up: without it the signing keys and credentials in the database are lost", "file", path)
	return keyring.Parse(text)
}

func newRingID() string {
	var b [4]byte
	rand.Read(b[:])
	return "k" + hex.EncodeToString(b[:])
}

// GenerateRing returns the text of a new ring with one key.
func GenerateRing() string { return keyring.Generate(newRingID()) }

// EnsureRing creates a ring file unless it exists, for development.
func EnsureRing(path string) error {
	err := writeOnce(path, GenerateRing()+"\n")
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// writeOnce writes a file that must not exist yet, and syncs it so that it survives a power failure.
func writeOnce(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// DatabaseFile returns the path of the embedded database.
func DatabaseFile(s *config.Storage) string { return filepath.Join(s.Data, "godwit.db") }
