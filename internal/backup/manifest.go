package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	manifestName = "backup.json"
	databaseName = "godwit.db"
	ringName     = "keyring"
	evidenceName = "evidence.key"
	acmeName     = "acme"
)

// A Manifest describes a backup.
type Manifest struct {
	Format    int       `json:"format"`
	CreatedAt time.Time `json:"created_at"`
	Version   string    `json:"godwit_version"`
	Schema    int       `json:"schema_version"`
	Files     []File    `json:"files"`
}

// A File is a file of a backup, by its path in it.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// format is the layout of backups that this program writes and reads.
const format = 1

func readManifest(dir string) (*Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no backup: it has no %s", dir, manifestName)
	}
	if err != nil {
		return nil, fmt.Errorf("read backup: %w", err)
	}
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("read backup: %s: %w", manifestName, err)
	}
	if m.Format != format {
		return nil, fmt.Errorf("the backup has format %d, this program reads %d: restore it with the release that wrote it, or a later one", m.Format, format)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Path) {
			return nil, fmt.Errorf("read backup: %s names %q, which is not in the backup", manifestName, f.Path)
		}
	}
	return &m, nil
}

func (m *Manifest) has(path string) bool {
	for _, f := range m.Files {
		if f.Path == path {
			return true
		}
	}
	return false
}

// describe reads a file to its end.
func describe(dir, path string) (File, error) {
	in, err := os.Open(filepath.Join(dir, path))
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, in)
	return File{Path: filepath.ToSlash(path), Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// copyFile copies a file into a new one and syncs it. It returns the description of what it wrote.
func copyFile(from, to string) (File, error) {
	in, err := os.Open(from)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return File{}, err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), in)
	err = errors.Join(err, out.Sync(), out.Close())
	return File{Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}
