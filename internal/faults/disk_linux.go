package faults

import (
	"os"
	"syscall"
)

func allocate(f *os.File, from, size int64) error {
	return syscall.Fallocate(int(f.Fd()), 0, from, size)
}
