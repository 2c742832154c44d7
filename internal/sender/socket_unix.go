//go:build unix

package sender

import (
	"io"
	"net"
	"syscall"
)

// linksWork says that this system can report, without waiting, whether anything has arrived on a connection. On other systems
// all requests go through net/http.
const linksWork = true

// A socket is a TCP connection that can be read and written without waiting.
type socket struct {
	net.Conn
	noWait bool // neither reading nor writing waits

	raw         syscall.RawConn
	read, write func(fd uintptr)
	data        []byte // of read and write
	n           int
	err         error
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
	s.read = func(fd uintptr) { s.at(fd, syscall.Read) }
	s.write = func(fd uintptr) { s.at(fd, syscall.Write) }
	return s
}

func (s *socket) at(fd uintptr, call func(fd int, p []byte) (int, error)) {
	for {
		if s.n, s.err = call(int(fd), s.data); s.err != syscall.EINTR {
			return
		}
	}
}

// Read waits, unless noWait is set: then it returns errQuiet if nothing has arrived.
func (s *socket) Read(p []byte) (int, error) {
	if !s.noWait {
		return s.Conn.Read(p)
	}
	// Control, unlike the connection's own Read, ignores the deadline; that of the last request may have passed.
	s.data = p
	err := s.raw.Control(s.read)
	s.data = nil
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

// Write waits, unless noWait is set: TLS may have to write then, and a peer that reads nothing must not block the caller.
func (s *socket) Write(p []byte) (int, error) {
	if !s.noWait || len(p) == 0 {
		return s.Conn.Write(p)
	}
	s.data = p
	err := s.raw.Control(s.write)
	s.data = nil
	switch {
	case err != nil:
		return 0, err
	case s.err != nil:
		return 0, s.err
	case s.n < len(p):
		return s.n, io.ErrShortWrite
	}
	return s.n, nil
}
