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

// clientCPU returns the CPU time of this process.
func clientCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU returns the CPU time of a backend; 0 if it cannot be read.
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
