//go:build !linux

package bench

import (
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// readUsage calls ps, which exists on systems without /proc. It has no peak; the current memory takes its place.
func readUsage(pid int) (usage, error) {
	out, err := exec.Command("ps", "-o", "rss=,time=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return usage{}, err
	}
	fields := strings.Fields(string(out))
	if len(fields) != 2 {
		return usage{}, errNotOurs
	}
	kb, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return usage{}, err
	}
	var cpu time.Duration
	for part := range strings.SplitSeq(strings.ReplaceAll(fields[1], "-", ":"), ":") {
		s, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return usage{}, err
		}
		cpu = cpu*60 + time.Duration(s*float64(time.Second))
	}
	return usage{cpu: cpu, rss: kb << 10, peakRSS: kb << 10}, nil
}

// databaseCPU is measured on Linux only.
func databaseCPU(int) time.Duration { return 0 }
