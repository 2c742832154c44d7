//go:build unix

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A Disk is a folder for a server's files. If the test may mount, it is a file system of its own that can be filled.
type Disk struct {
	Dir     string
	Mounted bool
}

const (
	diskSize = 24 << 30 // sparse: it costs what is written
	ballast  = "ballast"
)

// NewDisk makes a disk that goes with the test.
func NewDisk(t testing.TB) *Disk {
	t.Helper()
	parent, err := os.MkdirTemp("", "godwit-faults-disk-")
	if err == nil {
		err = os.Chmod(parent, 0o755) // PostgreSQL runs as a user of its own
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	image, place := filepath.Join(parent, "image"), filepath.Join(parent, "place")
	if err := os.Mkdir(place, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &Disk{Dir: filepath.Join(place, "files")}
	if err := mount(image, place); err != nil {
		t.Logf("no file system of its own (%v): its disk cannot be filled", err)
	} else {
		d.Mounted = true
		t.Cleanup(func() {
			if out, err := exec.Command("umount", "--lazy", place).CombinedOutput(); err != nil {
				t.Errorf("umount: %v: %s", err, out)
			}
		})
	}
	if err := os.Mkdir(d.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

// mount mounts a new ext4 file system in a file.
func mount(image, place string) error {
	if os.Geteuid() != 0 {
		return errors.New("only root may mount")
	}
	file, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(diskSize), file.Close()); err != nil {
		return err
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", image},
		{"mount", "-o", "loop,discard", image, place}, // what is deleted takes no space: a long run copies the database again and again
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command[0], err, out)
		}
	}
	return nil
}

// Fill leaves no free block.
func (d *Disk) Fill() error {
	file, err := os.Create(filepath.Join(d.Dir, "..", ballast))
	if err != nil {
		return err
	}
	defer file.Close()
	var size int64
	// The largest parts first: each is given while it fits.
	for part := int64(1 << 30); part >= 4<<10; {
		switch err := allocate(file, size, part); {
		case err == nil:
			size += part
		case errors.Is(err, syscall.ENOSPC):
			part /= 2
		default:
			return err
		}
	}
	return nil
}

// Free undoes Fill.
func (d *Disk) Free() error { return os.Remove(filepath.Join(d.Dir, "..", ballast)) }
