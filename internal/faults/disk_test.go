//go:build unix

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestDiskFills(t *testing.T) {
	d := NewDisk(t)
	if !d.Mounted {
		t.Skip("needs to mount a file system")
	}
	write := func() error { return os.WriteFile(filepath.Join(d.Dir, "file"), make([]byte, 1<<20), 0o600) }
	if err := d.Fill(); err != nil {
		t.Fatal(err)
	}
	if err := write(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if err := d.Free(); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Errorf("on a free disk: %v", err)
	}
}
