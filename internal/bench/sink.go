package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A sink receives deliveries on its own port and counts them in the current tally.
type sink struct {
	listener net.Listener
	manner   manner
	tally    atomic.Pointer[tally]
	served   atomic.Int64  // requests answered
	hung     chan struct{} // closed at the end: releases the requests that hang

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	done  sync.WaitGroup
}

// manner is how a sink answers.
type manner int

const (
	accepts manner = iota
	fails          // 500
	hangs          // reads the request and never answers
)

func startSink(m manner) (*sink, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{listener: l, manner: m, conns: map[net.Conn]struct{}{}, hung: make(chan struct{})}
	s.done.Go(s.accept)
	return s, nil
}

func (s *sink) addr() string { return s.listener.Addr().String() }
func (s *sink) url() string  { return "http://" + s.addr() + "/" }

func (s *sink) close() {
	s.listener.Close()
	close(s.hung)
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (s *sink) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.done.Go(func() {
			s.serve(c)
			c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

var (
	answerOK    = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	answerError = []byte("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
)

func (s *sink) serve(c net.Conn) {
	br := bufio.NewReaderSize(c, 16<<10)
	var body []byte
	for {
		n, err := readHead(br)
		if err != nil || n > 64<<20 {
			return
		}
		if cap(body) < n {
			body = make([]byte, n)
		}
		body = body[:n]
		if _, err := io.ReadFull(br, body); err != nil {
			return
		}
		answer := answerOK
		switch s.manner {
		case fails:
			answer = answerError
		case hangs:
			<-s.hung
			return
		}
		s.served.Add(1)
		if run, seq, at, err := readStamp(body); err == nil {
			if t := s.tally.Load(); t != nil && t.run == run {
				t.arrive(seq, at)
			}
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

var (
	contentLength = []byte("content-length:")
	errNoLength   = errors.New("message without a length")
)

// readHead reads a start line and fields and returns the length of the body that follows.
func readHead(br *bufio.Reader) (length int, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 && !first {
			if length < 0 {
				return 0, errNoLength
			}
			return length, nil
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			length = 0
			for _, c := range bytes.TrimSpace(line[len(contentLength):]) {
				if c < '0' || c > '9' || length > 1<<40 {
					return 0, errNoLength
				}
				length = length*10 + int(c-'0')
			}
		}
	}
}
