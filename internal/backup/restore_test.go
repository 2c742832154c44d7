package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A restore that fails after it has moved files says where they are.
func TestFilesSetAsideAreFound(t *testing.T) {
	r := &Restoration{Data: t.TempDir()}
	if err := os.WriteFile(filepath.Join(r.Data, "first"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := r.setAside([]string{"first", "missing"})
	if err == nil {
		t.Fatal("a missing file was moved")
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "first")); err != nil || string(kept) != "kept" {
		t.Errorf("the first file is not in %q: %v", dir, err)
	}
	if text := (&Restored{SetAside: dir}).whereAside(); !strings.Contains(text, dir) {
		t.Errorf("the error ends with %q", text)
	}
}
