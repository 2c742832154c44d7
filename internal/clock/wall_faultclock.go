//go:build faultclock && unix

package clock

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// skewVariable names a file of eight bytes: how many nanoseconds the clock of this process is off. Tests write it while the process
// runs, so that its clock jumps. No release is built with this tag.
const skewVariable = "GODWIT_FAULT_CLOCK"

var skew = mapSkew(os.Getenv(skewVariable))

// mapSkew maps the file into memory, so that reading the clock needs no system call.
func mapSkew(name string) *atomic.Int64 {
	if name == "" {
		return new(atomic.Int64)
	}
	file, err := os.Open(name)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	memory, err := syscall.Mmap(int(file.Fd()), 0, int(unsafe.Sizeof(atomic.Int64{})), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*atomic.Int64)(unsafe.Pointer(unsafe.SliceData(memory)))
}

// wall is the machine's clock with the skew. It has no monotonic reading, which a skew would move too.
func wall() time.Time { return time.Now().Round(0).Add(time.Duration(skew.Load())) }
