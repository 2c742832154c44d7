package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ErrInUse reports that another process serves the data directory.
var ErrInUse = errors.New("database is in use")

// A lockFile names the process that serves a data directory. Only the lock on it counts: the text may be out of date.
type lockFile struct{ f *os.File }

func acquireLock(path string) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := tryLock(f); err != nil {
		holder := readHolder(f)
		f.Close()
		return nil, fmt.Errorf("%w by %s; stop it or use another --data", ErrInUse, holder)
	}
	if err := writeHolder(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return &lockFile{f: f}, nil
}

func readHolder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if pid, perr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && perr == nil {
		return "process " + strconv.Itoa(pid)
	}
	return "another process"
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release frees the lock. The file stays; otherwise another process could hold a lock on a deleted file.
func (l *lockFile) release() error { return l.f.Close() }
