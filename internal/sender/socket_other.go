//go:build !unix

package sender

import "net"

const linksWork = false

type socket struct {
	net.Conn
	glancing bool
}

func newSocket(net.Conn) *socket { return nil }
