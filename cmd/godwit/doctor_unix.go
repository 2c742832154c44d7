//go:build unix

package main

import (
	"golang.org/x/sys/unix"

	"github.com/godwit-hq/godwit/internal/config"
)

func openFileLimit() (uint64, bool) {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 0, false
	}
	return uint64(r.Cur), true
}

func freeSpace(dir string) (config.Size, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return config.Size(uint64(s.Bavail) * uint64(s.Bsize)), true
}
