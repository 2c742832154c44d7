//go:build unix

package postgres

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clientCPU is the time that this process has run.
func clientCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU is the time that a backend has run; 0 where it cannot be seen.
func serverCPU(pid uint32) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0
	}
	run, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseInt(run, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n)
}
