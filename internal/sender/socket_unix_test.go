//go:build unix

package sender

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// fill writes until the system takes not a byte more.
func fill(t *testing.T, c *net.TCPConn) {
	t.Helper()
	c.SetWriteBuffer(4 << 10)
	c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := c.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	c.SetWriteDeadline(time.Time{})
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { // there is room for single bytes where there was none for more
		for err == nil {
			_, err = syscall.Write(int(fd), []byte("x"))
		}
	})
}

// A peer that reads nothing delays neither the check of an idle link nor its closing. Both happen under the lock of the links,
// or after an attempt's deadline, where waiting is not possible.
func TestUnreadLinkIsLeftWithoutWaiting(t *testing.T) {
	for name, leave := range map[string]func(*link){
		"close": (*link).close,
		"answer to what TLS asks": func(l *link) {
			l.socket.noWait = true
			// The peer's system may still make room for a while; then a write fails and does not wait.
			for err := error(nil); err == nil; {
				_, err = l.socket.Write([]byte("x"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			defer close(over)
			st := newStub(t, serverTLS("http/1.1"), func(p *peer) {
				p.Conn.(*tls.Conn).Handshake()
				<-over // and reads nothing
			})
			s := newSender(t)
			at, _ := s.destination(st.secureURL())
			b := newAttemptContext(context.Background(), 0)
			defer b.end()
			l, _, err := s.shared.dialLink(b, at)
			if err != nil {
				t.Fatal(err)
			}
			defer l.cut()
			fill(t, l.socket.Conn.(*net.TCPConn))
			l.socket.SetWriteDeadline(time.Now().Add(time.Hour))
			left := make(chan struct{})
			go func() { defer close(left); leave(l) }()
			select {
			case <-left:
			case <-time.After(waitLimit):
				t.Error("it waits for the peer")
			}
		})
	}
}
