package faults

import (
	"net"
	"sync"
	"time"
)

// A Condition is the state of a cable.
type Condition int

const (
	// Whole carries everything at once.
	Whole Condition = iota
	// Cut closes all connections and refuses new ones.
	Cut
	// HalfOpen accepts connections and keeps them open, and carries nothing.
	HalfOpen
	// Slow delays everything by the cable's delay.
	Slow
)

// A Cable is the connection between a node and a server: a TCP relay that a test can break and mend.
type Cable struct {
	listener net.Listener
	target   string
	delay    time.Duration

	mu        sync.Mutex
	condition Condition
	changed   chan struct{} // closed and replaced at every change
	conns     map[net.Conn]struct{}
}

// LayCable listens on a free port and relays to the target. Slow means a delay of half a second in each direction.
func LayCable(target string) (*Cable, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Cable{listener: l, target: target, delay: time.Second / 2, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(conn)
		}
	}()
	return c, nil
}

// Address is the host and port that a client connects to.
func (c *Cable) Address() string { return c.listener.Addr().String() }

// Close ends the cable with all connections.
func (c *Cable) Close() {
	c.listener.Close()
	c.Set(Cut)
}

// Set breaks or mends the cable. What a half-open cable has swallowed is lost, so that mending it closes its connections.
func (c *Cable) Set(condition Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if condition == Cut || c.condition == HalfOpen {
		for conn := range c.conns {
			conn.Close()
		}
	}
	c.condition = condition
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Cable) state() (Condition, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.condition, c.changed
}

func (c *Cable) carry(from net.Conn) {
	defer from.Close()
	if !c.add(from) {
		return
	}
	defer c.remove(from)
	for {
		condition, changed := c.state()
		if condition != HalfOpen {
			break
		}
		<-changed // connected, and no answer comes
	}
	to, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		c.copy(to, from)
		to.Close()
	}()
	c.copy(from, to)
}

// add reports false if the cable is cut.
func (c *Cable) add(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.condition == Cut {
		return false
	}
	c.conns[conn] = struct{}{}
	return true
}

func (c *Cable) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// copy carries one direction until it ends.
func (c *Cable) copy(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			switch condition, changed := c.state(); condition {
			case HalfOpen:
				continue // swallowed
			case Slow:
				late := time.NewTimer(c.delay)
				select {
				case <-late.C:
				case <-changed:
				}
				late.Stop()
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
