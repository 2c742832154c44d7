package faultdisk

import (
	"os"
	"path/filepath"
	"syscall"

	lib "modernc.org/sqlite/lib"
)

// A PlainFile is a file of the disk that the program uses itself, beside SQLite.
type PlainFile struct {
	real *os.File
	f    *openFile
}

// OpenFile opens an existing file of the disk for reading and writing.
func (d *Disk) OpenFile(path string) (*PlainFile, error) {
	name := filepath.Base(path)
	if rc := d.begin(Open, name); rc != lib.SQLITE_OK {
		return nil, d.errno()
	}
	real, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &PlainFile{real: real, f: d.opened(name, 0)}, nil
}

// ReadAt reads what was written, synced or not.
func (p *PlainFile) ReadAt(b []byte, off int64) (int, error) {
	if p.f.disk.off() {
		return 0, syscall.EIO
	}
	return p.real.ReadAt(b, off)
}

// WriteAt writes without a sync.
func (p *PlainFile) WriteAt(b []byte, off int64) (int, error) {
	kept, rc := p.f.write(b, off)
	n, err := p.real.WriteAt(b[:kept], off)
	if rc != lib.SQLITE_OK {
		return n, p.f.disk.errno()
	}
	return n, err
}

// Sync records the sync.
func (p *PlainFile) Sync() error {
	if rc := p.f.sync(); rc != lib.SQLITE_OK {
		return p.f.disk.errno()
	}
	return nil
}

// Close closes the file.
func (p *PlainFile) Close() error { return p.real.Close() }

// errno is the reason of the present fault.
func (d *Disk) errno() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil && d.fault.Errno == ENOSPC {
		return syscall.ENOSPC
	}
	return syscall.EIO
}
