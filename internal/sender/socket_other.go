//go:build !unix

package sender

import "net"

const linksWork = false

type socket struct {
	net.Conn
	noWait bool
}

func newSocket(net.Conn) *socket { return nil }
