package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"go.yaml.in/yaml/v3"
)

// contextFile is the file with the named contexts.
type contextFile struct {
	Current  string                  `yaml:"current,omitempty"`
	Contexts map[string]savedContext `yaml:"contexts,omitempty"`

	path string
}

// savedContext is a server with the API key to use there.
type savedContext struct {
	URL         string `yaml:"url"`
	Key         string `yaml:"key"`
	Environment string `yaml:"environment,omitempty"` // to act for; empty: the key's own
	Tenant      string `yaml:"tenant,omitempty"`      // to act for; empty: the key's own
}

// names returns the names of the contexts in order.
func (f *contextFile) names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// contextPath returns the place of the file.
func (s *Session) contextPath() (string, error) {
	if dir, ok := s.Lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "godwit", "config.yaml"), nil
	}
	if runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "godwit", "config.yaml"), err
	}
	home, ok := s.Lookup("HOME")
	if !ok || home == "" {
		return "", errors.New("no place for contexts: neither XDG_CONFIG_HOME nor HOME is set")
	}
	return filepath.Join(home, ".config", "godwit", "config.yaml"), nil
}

// contexts reads the file. A file that does not exist has no contexts. A file that other users can read or write is refused, because it
// holds keys.
func (s *Session) contexts() (*contextFile, error) {
	path, err := s.contextPath()
	if err != nil {
		return &contextFile{}, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &contextFile{path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read contexts: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read contexts: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s holds API keys, and its mode %04o lets other users at it; run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read contexts: %w", err)
	}
	file := &contextFile{path: path}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is not a file of contexts; correct or remove it", path) // the error might quote a key
	}
	return file, nil
}

// save replaces the file. A reader sees the former content or the new one.
func (f *contextFile) save() error {
	if f.path == "" {
		return errors.New("no place for contexts: neither XDG_CONFIG_HOME nor HOME is set")
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	draft, err := os.CreateTemp(dir, "config-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("save contexts: %w", err)
	}
	_, err = draft.Write(text)
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), f.path)
	}
	if err != nil {
		os.Remove(draft.Name())
		return fmt.Errorf("save contexts: %w", err)
	}
	return nil
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

func checkContextName(name string) error {
	if !contextName.MatchString(name) {
		return fmt.Errorf("%q cannot name a context; use up to 64 letters, digits, and . _ : -", name)
	}
	return nil
}
