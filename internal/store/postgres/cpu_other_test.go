//go:build !unix

package postgres

import "time"

// CPU time that cannot be measured counts as zero.

func clientCPU() time.Duration { return 0 }

func serverCPU(uint32) time.Duration { return 0 }
