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

// A sink receives deliveries on one or more ports and counts them in the current tally.
type sink struct {
	listeners []net.Listener
	scheme    string // of its URLs
	manner    manner
	tally     atomic.Pointer[tally]
	served    atomic.Int64  // requests answered
	hung      chan struct{} // closed at the end: releases the requests that hang

	// A sink with TLS closes a connection after so many requests, so that sessions are resumed.
	perConnection       int
	handshakes, resumed atomic.Int64

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
	s := &sink{scheme: "http", manner: m, conns: map[net.Conn]struct{}{}, hung: make(chan struct{})}
	if err := s.listen(1); err != nil {
		return nil, err
	}
	return s, nil
}

// listen opens n more ports.
func (s *sink) listen(n int) error {
	for range n {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
		s.done.Go(func() { s.accept(l) })
	}
	return nil
}

func (s *sink) addr() string { return s.listeners[0].Addr().String() }
func (s *sink) url() string  { return s.urls()[0] }

// urls has one URL for each port.
func (s *sink) urls() []string {
	all := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		all[i] = s.scheme + "://" + l.Addr().String() + "/"
	}
	return all
}

func (s *sink) close() {
	for _, l := range s.listeners {
		l.Close()
	}
	close(s.hung)
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (s *sink) accept(l net.Listener) {
	for {
		c, err := l.Accept()
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
	answerLast  = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	answerError = []byte("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
)

func (s *sink) serve(c net.Conn) {
	br := bufio.NewReaderSize(c, 16<<10)
	var body []byte
	for n := 1; ; n++ {
		head, err := readHead(br)
		if err != nil || head.length > 64<<20 {
			return
		}
		if n == 1 {
			s.countHandshake(c)
		}
		if cap(body) < head.length {
			body = make([]byte, head.length)
		}
		body = body[:head.length]
		if _, err := io.ReadFull(br, body); err != nil {
			return
		}
		answer := answerOK
		switch {
		case s.manner == fails:
			answer = answerError
		case s.manner == hangs:
			<-s.hung
			return
		case n == s.perConnection:
			answer = answerLast
		}
		s.arrived(head.number, body)
		if _, err := c.Write(answer); err != nil || n == s.perConnection {
			return
		}
	}
}

// arrived counts a delivery. number is the one at the end of its path.
func (s *sink) arrived(number uint64, body []byte) {
	s.served.Add(1)
	run, seq, at, err := readStamp(body)
	if err != nil {
		return
	}
	t := s.tally.Load()
	switch {
	case t == nil || t.run != run:
	case t.byPath:
		t.arrive(number, at)
	default:
		t.arrive(seq, at)
	}
}

var (
	contentLength = []byte("content-length:")
	errNoLength   = errors.New("message without a length")
)

// head is what counts of the head of a message.
type head struct {
	number uint64 // at the end of a request's path; 0 if there is none
	length int    // of the body
}

// readHead reads a start line and fields.
func readHead(br *bufio.Reader) (h head, err error) {
	h.length = -1
	for first := true; ; first = false {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return h, err
		}
		if first {
			h.number = pathNumber(line)
			continue
		}
		if len(line) <= 2 {
			if h.length < 0 {
				return h, errNoLength
			}
			return h, nil
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if h.length, err = decimal(bytes.TrimSpace(line[len(contentLength):])); err != nil {
				return h, err
			}
		}
	}
}

func decimal(digits []byte) (n int, err error) {
	for _, c := range digits {
		if c < '0' || c > '9' || n > 1<<40 {
			return 0, errNoLength
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

// pathNumber is the 17 of "POST /17 HTTP/1.1".
func pathNumber(line []byte) uint64 {
	_, rest, _ := bytes.Cut(line, []byte(" /"))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	n, _ := decimal(digits) // of a response, or of another path: none
	return uint64(n)
}
