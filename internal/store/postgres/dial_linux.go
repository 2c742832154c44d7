package postgres

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialer notices in some ten seconds that a server has lost its power or its network: by keep-alives on an idle connection, by
// the age of unacknowledged data on one with a query under way.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
		Control: func(network, _ string, raw syscall.RawConn) error {
			if network == "unix" {
				return nil
			}
			var err error
			controlled := raw.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
			})
			if controlled != nil {
				return controlled
			}
			return err
		},
	}
}

// unacknowledged is how long data may wait for the server's acknowledgement.
const unacknowledged = 10 * time.Second
