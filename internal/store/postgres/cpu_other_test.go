//go:build !unix

package postgres

import "time"

// Where CPU time cannot be seen it counts as none.

func clientCPU() time.Duration { return 0 }

func serverCPU(uint32) time.Duration { return 0 }
