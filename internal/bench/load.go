package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A load describes the generator's work: it posts events over keep-alive connections, each waiting for its response before the
// next.
type load struct {
	addr        string   // host:port
	addrs       []string // not empty: in place of addr; the connections are spread over them
	path        string
	turns       int      // not zero: the four digits in path count the events, modulo this
	pick        [][]int  // not empty: for each of addrs, the numbers that take turns there, in place of all below turns
	header      []string // "Name: value"
	connections int
	size        int
	// seconds or events end the run, whichever is reached first; zero is no limit.
	length time.Duration
	events int
	// rate, if not zero, is the number of events a second over all connections. An event's latency then counts from the time at
	// which it was due, not from when a connection was free: a stalled server is charged for the events it delayed.
	rate float64
}

// run posts until the load is done and records the results in the tally. It returns the time of the first post.
func (l *load) run(ctx context.Context, t *tally) (start time.Duration, err error) {
	if l.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.length)
		defer cancel()
	}
	conns := make([]*connection, l.connections)
	for i := range conns {
		at, addr := 0, l.addr
		if len(l.addrs) > 0 {
			at = i % len(l.addrs)
			addr = l.addrs[at]
		}
		if conns[i], err = l.dialTo(ctx, addr, t.run); err != nil {
			return 0, err
		}
		if len(l.pick) > 0 {
			conns[i].pick = l.pick[at]
		}
		defer conns[i].close()
	}
	start = t.clock.now()
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() { errs[i] = l.drive(ctx, t, c, i, start) })
	}
	wg.Wait()
	for _, e := range errs {
		if e != nil {
			return start, e
		}
	}
	return start, nil
}

// drive posts over one connection until the load is done.
func (l *load) drive(ctx context.Context, t *tally, c *connection, i int, start time.Duration) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for k := 0; ctx.Err() == nil; k++ {
		at := t.clock.now()
		if l.rate > 0 {
			at = start + time.Duration(float64(k*l.connections+i)/l.rate*float64(time.Second))
			if wait := at - t.clock.now(); wait > 0 {
				timer.Reset(wait)
				select {
				case <-ctx.Done():
					return nil
				case <-timer.C:
				}
			}
		}
		seq, ok := t.take()
		if !ok || (l.events > 0 && seq >= uint64(l.events)) {
			return nil
		}
		status, err := c.post(seq, at)
		switch {
		case err != nil:
			t.failed.Add(1)
			return fmt.Errorf("post to %s: %w", l.addr, err)
		case status >= 200 && status < 300:
			t.ack(seq)
		default:
			t.failed.Add(1)
			if t.failed.Load() > 1000 && t.acked.Load() == 0 {
				return fmt.Errorf("post to %s: answered with %d", l.addr, status)
			}
		}
	}
	return nil
}

// turnDigits are the digits of a path that count.
const turnDigits = "0000"

// connection is a keep-alive connection with a request in which number and time are set.
type connection struct {
	conn    net.Conn
	br      *bufio.Reader
	request []byte
	body    []byte // the end of request
	turns   uint64
	turn    []byte // the digits of the path
	pick    []int  // see load
}

func (l *load) dial(ctx context.Context, run uint32) (*connection, error) {
	return l.dialTo(ctx, l.addr, run)
}

func (l *load) dialTo(ctx context.Context, addr string, run uint32) (*connection, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	body := newBody(run, l.size)
	head := "POST " + l.path + " HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\n"
	for _, h := range l.header {
		head += h + "\r\n"
	}
	head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	request := append([]byte(head), body...)
	c.request, c.body = request, request[len(head):]
	if l.turns > 0 {
		at := strings.Index(head, turnDigits)
		if at < 0 {
			return nil, fmt.Errorf("the path %s has no digits to count", l.path)
		}
		c.turns, c.turn = uint64(l.turns), request[at:at+len(turnDigits)]
	}
	return c, nil
}

func dial(ctx context.Context, addr string) (*connection, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, br: bufio.NewReaderSize(conn, 4<<10)}, nil
}

func (c *connection) close() { c.conn.Close() }

// answerWithin limits the wait for one response, so that the run ends if the server has died.
const answerWithin = 30 * time.Second

func (c *connection) post(seq uint64, at time.Duration) (status int, err error) {
	stamp(c.body, seq, at)
	if c.turns > 0 {
		n := seq % c.turns
		if len(c.pick) > 0 {
			n = uint64(c.pick[seq%uint64(len(c.pick))])
		}
		for i := len(c.turn) - 1; i >= 0; n, i = n/10, i-1 {
			c.turn[i] = byte('0' + n%10)
		}
	}
	return c.exchange(c.request)
}

// exchange sends a request and reads the response, of which only the status counts.
func (c *connection) exchange(request []byte) (status int, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	line, err := c.br.Peek(len("HTTP/1.1 200"))
	if err != nil {
		return 0, err
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, fmt.Errorf("read status: %w", err)
	}
	h, err := readHead(c.br)
	if err != nil {
		return 0, fmt.Errorf("read answer with status %d: %w", status, err)
	}
	_, err = io.CopyN(io.Discard, c.br, int64(h.length))
	return status, err
}
