package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// A Restoration configures Restore.
type Restoration struct {
	// From is the directory of the backup.
	From string
	// Data is the data directory.
	Data string
	// Force sets files aside that are in the data directory. Defaults to false: they are refused.
	Force bool
}

// Restored is the result of Restore.
type Restored struct {
	Manifest *Manifest
	// SetAside is the directory with the files that were in the data directory before. Empty: there were none.
	SetAside string
	// WithoutRing says that the backup has no key ring.
	WithoutRing bool
}

const (
	incomingName = "restore.partial"
	lockFileName = "godwit.lock"
)

// Restore brings a backup into a data directory. No server may run on it.
func Restore(ctx context.Context, r Restoration) (*Restored, error) {
	m, err := readManifest(r.From)
	if err != nil {
		return nil, err
	}
	if err := r.checkSchema(m); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	release, err := sqlite.Lock(r.Data)
	if err != nil {
		return nil, err
	}
	defer release()
	present, err := r.present()
	if err != nil {
		return nil, err
	}
	if len(present) > 0 && !r.Force {
		return nil, fmt.Errorf("%s is not empty (%s); restore into an empty directory, or use --force, which sets these files aside", r.Data, present[0])
	}
	incoming := filepath.Join(r.Data, incomingName)
	if err := r.receive(ctx, m, incoming); err != nil {
		return nil, errors.Join(err, os.RemoveAll(incoming))
	}
	done := &Restored{Manifest: m, WithoutRing: !m.has(ringName)}
	if done.SetAside, err = r.setAside(present); err != nil {
		return nil, fmt.Errorf("set files aside in %s: %w", cmp.Or(done.SetAside, r.Data), err)
	}
	if err := r.install(m, incoming); err != nil {
		return nil, fmt.Errorf("restore: %w%s", err, done.whereAside())
	}
	return done, nil
}

// whereAside says where the former files are, for an error message.
func (d *Restored) whereAside() string {
	if d.SetAside == "" {
		return ""
	}
	return "; the files that were there before are in " + d.SetAside
}

func (r *Restoration) checkSchema(m *Manifest) error {
	if !m.has(databaseName) {
		return fmt.Errorf("%s is no backup of a database: %s does not name %s", r.From, manifestName, databaseName)
	}
	current, err := sqlite.CurrentSchema()
	if err != nil {
		return err
	}
	if m.Schema > current {
		return fmt.Errorf("%w: the backup has version %d (godwit %s), this program knows up to %d", store.ErrNewerSchema, m.Schema, m.Version, current)
	}
	return nil
}

// present lists what is in the data directory, besides our own files.
func (r *Restoration) present() (names []string, err error) {
	list, err := os.ReadDir(r.Data)
	if err != nil {
		return nil, fmt.Errorf("read data directory: %w", err)
	}
	for _, e := range list {
		switch e.Name() {
		case lockFileName:
		case incomingName: // of a restore that was interrupted
			if err := os.RemoveAll(filepath.Join(r.Data, e.Name())); err != nil {
				return nil, err
			}
		default:
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// receive copies the backup next to its final place, and checks every byte.
func (r *Restoration) receive(ctx context.Context, m *Manifest, incoming string) error {
	if err := os.Mkdir(incoming, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for _, f := range m.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		got, err := copyFile(filepath.Join(r.From, filepath.FromSlash(f.Path)), filepath.Join(incoming, filepath.FromSlash(f.Path)))
		if err != nil {
			return fmt.Errorf("restore %s: %w", f.Path, err)
		}
		if got.Size != f.Size || got.SHA256 != f.SHA256 {
			return fmt.Errorf("%w: %s in the backup is not as it was written (%d bytes, sha256 %s; %s says %d and %s)",
				store.ErrDamaged, f.Path, got.Size, got.SHA256, manifestName, f.Size, f.SHA256)
		}
	}
	return nil
}

// setAside moves files into a directory of their own.
func (r *Restoration) setAside(names []string) (dir string, err error) {
	if len(names) == 0 {
		return "", nil
	}
	if dir, err = os.MkdirTemp(r.Data, "before-restore-"+time.Now().UTC().Format("20060102T150405Z")+"-"); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(r.Data, name), filepath.Join(dir, name)); err != nil {
			return dir, err
		}
	}
	return dir, errors.Join(syncDir(dir), syncDir(r.Data))
}

// install moves the files into place, the database last: until then a server refuses to start, or starts with nothing.
func (r *Restoration) install(m *Manifest, incoming string) error {
	moved := map[string]bool{databaseName: true}
	for _, f := range m.Files {
		top, _, _ := strings.Cut(f.Path, "/")
		if moved[top] {
			continue
		}
		moved[top] = true
		if err := os.Rename(filepath.Join(incoming, top), filepath.Join(r.Data, top)); err != nil {
			return err
		}
	}
	if err := syncDir(r.Data); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(incoming, databaseName), filepath.Join(r.Data, databaseName)); err != nil {
		return err
	}
	if err := os.Remove(incoming); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(r.Data)
}
