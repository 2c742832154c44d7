package faults

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo answers each line with itself.
func echo(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	return l.Addr().String()
}

func TestCable(t *testing.T) {
	cable, err := LayCable(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cable.Close)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", cable.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "hello\n"); err != nil {
			return err
		}
		_, err := bufio.NewReader(conn).ReadString('\n')
		return err
	}
	conn := dial()
	if err := ask(conn); err != nil {
		t.Fatalf("whole: %v", err)
	}
	cable.Set(Slow)
	begun := time.Now()
	if err := ask(conn); err != nil || time.Since(begun) < cable.delay {
		t.Errorf("slow: %v after %s", err, time.Since(begun))
	}
	cable.Set(HalfOpen)
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if err := ask(conn); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half open: %v", err)
	}
	fresh := dial()
	fresh.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if err := ask(fresh); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half open, connected then: %v", err)
	}
	cable.Set(Whole)
	conn = dial()
	if err := ask(conn); err != nil {
		t.Errorf("mended: %v", err)
	}
	cable.Set(Cut)
	if err := ask(conn); err == nil {
		t.Error("cut: an answer")
	}
	if err := ask(dial()); err == nil {
		t.Error("cut, connected then: an answer")
	}
}
