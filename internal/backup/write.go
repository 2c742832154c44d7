package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// Options configure Write.
type Options struct {
	// Storage and EvidenceKey are the settings of the server.
	Storage     config.Storage
	EvidenceKey string
	// Into is the directory to write. It must not exist.
	Into string
	// WithoutKeys leaves out the key ring and the evidence key. Defaults to false.
	WithoutKeys bool
	// Progress gets the copied pages of the database and all pages. Defaults to nil.
	Progress func(done, total int)
	Log      *slog.Logger
}

// Write writes a backup and returns its description. A server may be running.
func Write(ctx context.Context, o Options) (*Manifest, error) {
	database := app.DatabaseFile(&o.Storage)
	if _, err := os.Stat(database); err != nil {
		return nil, fmt.Errorf("there is no database to back up: %w", err)
	}
	into, err := filepath.Abs(o.Into)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(into); err == nil {
		return nil, fmt.Errorf("%s exists; a backup overwrites nothing: choose another name", o.Into)
	}
	if err := os.MkdirAll(filepath.Dir(into), 0o700); err != nil {
		return nil, fmt.Errorf("write backup: %w", err)
	}
	partial, err := os.MkdirTemp(filepath.Dir(into), filepath.Base(into)+".partial-")
	if err != nil {
		return nil, fmt.Errorf("write backup: %w", err)
	}
	defer os.RemoveAll(partial) // once it is renamed there is nothing to remove
	m, err := o.fill(ctx, database, partial)
	if err != nil {
		return nil, err
	}
	if err := publish(partial, into); err != nil {
		return nil, fmt.Errorf("write backup: %w", err)
	}
	return m, nil
}

// publish gives a finished backup its name.
func publish(partial, into string) error {
	if err := syncDir(partial); err != nil {
		return err
	}
	if err := os.Rename(partial, into); err != nil { // fails if the name was taken meanwhile by a directory with files
		return err
	}
	return syncDir(filepath.Dir(into))
}

func (o *Options) fill(ctx context.Context, database, dir string) (*Manifest, error) {
	copied := filepath.Join(dir, databaseName)
	if err := sqlite.Backup(ctx, database, copied, o.Progress); err != nil {
		return nil, err
	}
	if err := sqlite.CheckIntegrity(ctx, copied); err != nil {
		return nil, fmt.Errorf("the copy of the database does not pass the check: %w", err)
	}
	if err := o.copyKeys(dir); err != nil {
		return nil, err
	}
	if err := o.copyCertificates(dir); err != nil {
		return nil, err
	}
	if err := o.checkRing(ctx, copied); err != nil {
		return nil, err
	}
	schema, err := sqlite.ReadSchema(ctx, copied)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: format, CreatedAt: time.Now().UTC(), Version: telemetry.Build().Version, Schema: schema.Version}
	if err := m.seal(dir); err != nil {
		return nil, fmt.Errorf("write backup: %w", err)
	}
	return m, nil
}

// copyKeys copies the keys that are in files. A key ring in the environment is the operator's to keep.
func (o *Options) copyKeys(dir string) error {
	if o.WithoutKeys {
		o.Log.Warn("the backup has no keys; keep the key ring and the evidence key yourself: without them it cannot be used")
		return nil
	}
	ring, key := o.Storage.KeyringFile, o.EvidenceKey
	if ring == "" {
		ring = filepath.Join(o.Storage.Data, ringName)
	}
	if key == "" {
		key = filepath.Join(o.Storage.Data, evidenceName)
	}
	if o.Storage.Keyring != "" {
		o.Log.Warn("the key ring is a setting, not a file; keep it yourself: without it the backup cannot be used")
	} else if _, err := copyFile(ring, filepath.Join(dir, ringName)); err != nil {
		return fmt.Errorf("back up key ring: %w", err)
	}
	if _, err := copyFile(key, filepath.Join(dir, evidenceName)); errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("there is no evidence key yet: no server has run on this data", "file", key)
	} else if err != nil {
		return fmt.Errorf("back up evidence key: %w", err)
	}
	return nil
}

// copyCertificates copies certificates that were obtained by ACME, with the account.
func (o *Options) copyCertificates(dir string) error {
	from := filepath.Join(o.Storage.Data, acmeName)
	list, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if err == nil && e.Type().IsRegular() {
			_, err = copyFile(filepath.Join(from, e.Name()), filepath.Join(dir, acmeName, e.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("back up certificates: %w", err)
	}
	return nil
}

// checkRing makes sure that the key ring opens the copied secrets: a backup with another ring would be found useless only when it is needed.
func (o *Options) checkRing(ctx context.Context, database string) error {
	ring, err := app.OpenRing(&o.Storage, o.Log)
	if err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, database, sqlite.Options{NoMigrate: true})
	if err != nil {
		return fmt.Errorf("open the copy of the database: %w", err)
	}
	return errors.Join(app.CheckRing(ctx, s, ring), s.Close())
}

// seal describes the files of the backup and writes the manifest.
func (m *Manifest) seal(dir string) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return syncDir(path)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := describe(dir, name)
		m.Files = append(m.Files, f)
		return err
	})
	if err != nil {
		return err
	}
	if err := syncFile(filepath.Join(dir, databaseName)); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, manifestName)
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return syncFile(path)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncDir(path string) error { return sqlite.SyncDirectory(path) }
