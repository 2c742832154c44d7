package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// databaseCPU returns the CPU time of a PostgreSQL server so far, all of its processes together, given one of its backends. It is 0
// if the process is not one of this machine.
func databaseCPU(backend int) time.Duration {
	name, fields := readStat(backend)
	if name != "postgres" {
		return 0
	}
	parent := fields[1]
	postmaster, err := strconv.Atoi(parent)
	if err != nil {
		return 0
	}
	_, fields = readStat(postmaster)
	sum := ticks(fields, 11, 15) // its own, and that of backends that have ended
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, entry := range all {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if _, fields := readStat(pid); len(fields) > 1 && fields[1] == parent {
				sum += ticks(fields, 11, 13)
			}
		}
	}
	return sum
}

// readStat returns a process's name and the fields of its stat file after the name. There are none if the process has ended.
func readStat(pid int) (name string, fields []string) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // the name may hold any character
	if err != nil || open < 0 || shut < open {
		return "", nil
	}
	return string(stat[open+1 : shut]), strings.Fields(string(stat[shut+1:]))
}

// ticks adds up fields of a stat file that count CPU time.
func ticks(fields []string, first, end int) (sum time.Duration) {
	for i := first; i < end && i < len(fields); i++ {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		sum += time.Duration(n) * time.Second / ticksPerSecond
	}
	return sum
}

// ticksPerSecond is USER_HZ, which has been 100 on every Linux architecture Go runs on.
const ticksPerSecond = 100

func readUsage(pid int) (usage, error) {
	var u usage
	_, fields := readStat(pid)
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	u.cpu = ticks(fields, 11, 13) // utime, stime
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			u.rss = kb << 10
		case "VmHWM":
			u.peakRSS = kb << 10
		}
	}
	return u, nil
}
