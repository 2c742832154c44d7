//go:build !linux

package postgres

import (
	"net"
	"time"
)

// dialer notices by keep-alives that a server has lost its power or its network.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
	}
}
