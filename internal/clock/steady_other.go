//go:build !linux

package clock

import "time"

func sinceBoot() time.Duration { return time.Since(started) }
