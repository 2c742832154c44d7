package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
)

func openRing(t *testing.T, s config.Storage) (id, log string, err error) {
	t.Helper()
	l := &apptest.Log{}
	ring, err := app.OpenRing(&s, app.NewLogger(config.Log{Format: "text"}, l))
	if err != nil {
		return "", l.String(), err
	}
	return ring.Active(), l.String(), nil
}

func TestRingIsMadeOnceAndKept(t *testing.T) {
	s := config.Storage{Data: filepath.Join(t.TempDir(), "data"), Store: config.SQLite}
	first, log, err := openRing(t, s)
	if err != nil || !strings.Contains(log, "back it up") {
		t.Fatalf("first: %v, log %q", err, log)
	}
	info, err := os.Stat(filepath.Join(s.Data, "keyring"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ring file: %v %v", info, err)
	}
	second, log, err := openRing(t, s)
	if err != nil || second != first || log != "" {
		t.Errorf("second: %s after %s, %v, log %q", second, first, err, log)
	}
	if err := os.Chmod(filepath.Join(s.Data, "keyring"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, log, _ = openRing(t, s); !strings.Contains(log, "chmod 600") {
		t.Errorf("nothing said about an open ring: %q", log)
	}
}

func TestRingIsNotReplacedWhenADatabaseNeedsIt(t *testing.T) {
	s := config.Storage{Data: t.TempDir(), Store: config.SQLite}
	if err := os.WriteFile(app.DatabaseFile(&s), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openRing(t, s); err == nil || !strings.Contains(err.Error(), "backup") {
		t.Errorf("got %v", err)
	}
}

func TestRingMustBeBroughtToPostgres(t *testing.T) {
	s := config.Storage{Data: t.TempDir(), Store: "postgres://u:sesame@h/d"}
	_, _, err := openRing(t, s)
	if err == nil || !strings.Contains(err.Error(), "godwit keys ring") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got %v", err)
	}
	s.KeyringFile = filepath.Join(s.Data, "misspelt")
	if _, _, err = openRing(t, s); err == nil || !strings.Contains(err.Error(), "misspelt does not exist") {
		t.Errorf("a file that is not there: %v", err)
	}
	s.Keyring = app.GenerateRing()
	if id, _, err := openRing(t, s); err != nil || !strings.HasPrefix(s.Keyring, id) {
		t.Errorf("given by setting: %v", err)
	}
	s.Keyring = "k1:sesame"
	if _, _, err := openRing(t, s); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a broken ring: %v", err)
	}
}
