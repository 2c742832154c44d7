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

// A lockFile says which process serves a data directory. The lock on it is what counts: the text may be old.
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

// release frees the lock; the file stays, or a third process could lock one that is no longer there.
func (l *lockFile) release() error { return l.f.Close() }
