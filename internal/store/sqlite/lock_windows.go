//go:build windows

package sqlite

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes a lock that ends with the process in all cases. It covers a byte far behind the text, so that other processes
// can read which one holds it.
func tryLock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{Offset: 1 << 20})
}
