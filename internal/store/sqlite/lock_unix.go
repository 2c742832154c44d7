//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// tryLock takes an advisory lock that ends with the process in all cases.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
