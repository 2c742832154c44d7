//go:build unix

package sender

import (
	"io"
	"net"
	"syscall"
)

// linksWork says that this system lets a connection be asked whether anything has arrived, without waiting. Where it does
// not, all requests go through net/http.
const linksWork = true

// A socket is a TCP connection that can be read without waiting.
type socket struct {
	net.Conn
	glancing bool

	raw  syscall.RawConn
	read func(fd uintptr)
	into []byte // of read
	n    int
	err  error
}

// newSocket returns nil for a connection that has no file descriptor.
func newSocket(conn net.Conn) *socket {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socket{Conn: conn, raw: raw}
	s.read = func(fd uintptr) {
		for {
			if s.n, s.err = syscall.Read(int(fd), s.into); s.err != syscall.EINTR {
				return
			}
		}
	}
	return s
}

// Read waits, unless the socket is only to be glanced at: then it returns errQuiet when nothing has arrived.
func (s *socket) Read(p []byte) (int, error) {
	if !s.glancing {
		return s.Conn.Read(p)
	}
	// Control, unlike the connection's own Read, minds no deadline; the last request's may have passed.
	s.into = p
	err := s.raw.Control(s.read)
	s.into = nil
	switch {
	case err != nil:
		return 0, err
	case s.err == syscall.EAGAIN:
		return 0, errQuiet
	case s.err != nil:
		return 0, s.err
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}
