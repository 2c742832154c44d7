package postgres

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A connector decides when a new connection may be made and which host is tried first. All connections of a store share it.
//
// While the database is away, one connection at a time is tried, at growing intervals with jitter; meanwhile queries fail at
// once. So neither the pools of a node nor the nodes of a fleet rush at a server that has just come back.
//
// A busy server may take too long for one more connection and still answer queries on the others. It is not away: queries that need one
// more connection would be refused without need.
type connector struct {
	log *slog.Logger
	// renewed is called when a connection leads to another host than the last one did, or to a host that was down meanwhile; may be nil.
	renewed func()

	mu        sync.Mutex
	failures  int       // in a row
	since     time.Time // of the first of these failures
	slow      bool      // all of these failures were timeouts
	down      bool      // one of these failures tells that no server ran
	next      time.Time // no attempt before
	connected time.Time // when a host took the last connection
	answered  time.Time // when the last query was answered
	resolved  map[string][]string
	last      server // the last one that took a connection; zero before
}

// A server is one of the hosts in the store's URL.
type server struct {
	host string
	port uint16
}

func (s server) String() string { return net.JoinHostPort(s.host, strconv.Itoa(int(s.port))) }

// errWaiting answers queries that need a new connection before the next attempt is due.
var errWaiting = errors.New("the database is away; the next attempt to connect is not due yet")

// Pauses between attempts to connect.
const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// attach makes the connector follow all connections made with the configuration.
func (c *connector) attach(config *pgx.ConnConfig) {
	config.Tracer = &connectTracer{QueryTracer: config.Tracer, connector: c}
	lookup := config.LookupFunc
	config.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		addresses, err := lookup(ctx, host)
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.resolved == nil {
				c.resolved = map[string][]string{}
			}
			c.resolved[host] = addresses
		}
		return addresses, err
	}
}

// before is called before each connection. It refuses the connection while a pause lasts, and tries the host first that took the
// last one: a host that lost its power would cost every connection the whole timeout.
func (c *connector) before(_ context.Context, config *pgx.ConnConfig) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > 0 {
		now := time.Now()
		if now.Before(c.next) {
			return errWaiting
		}
		c.next = now.Add(pauseAfter(c.failures)) // others wait for the result of this attempt
	}
	preferHost(&config.Config, c.last)
	return nil
}

// pauseAfter doubles with each failure up to maxPause, half of it random.
func pauseAfter(failures int) time.Duration {
	full := min(minPause<<min(failures-1, 10), maxPause)
	return full/2 + rand.N(full/2)
}

func preferHost(config *pgconn.Config, first server) {
	all := slices.Concat([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks)
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int {
		return rank(a, first) - rank(b, first)
	})
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

func rank(f *pgconn.FallbackConfig, first server) int {
	if (server{f.Host, f.Port}) == first {
		return 0
	}
	return 1
}

// failed notes that no host took a connection, in an attempt that began at the given time. Before the first connection the caller of Open
// gets the error, and logs it.
func (c *connector) failed(err error, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := pgconn.Timeout(err)
	if c.connected.After(began) || timeout && c.answered.After(began) {
		return // later attempts tell more than this one
	}
	c.slow = timeout && (c.slow || c.failures == 0)
	c.down = isDown(err) || c.down && c.failures > 0
	if c.failures++; c.failures == 1 && c.last != (server{}) {
		c.since = time.Now()
		c.log.Warn("database does not take connections; tried again until it does", "error", err)
	}
	c.next = time.Now().Add(pauseAfter(c.failures))
}

// isDown reports whether an attempt to connect failed because no server ran, or one that was only starting or stopping. Connections that were made
// before are dead then, though the pools do not know it yet.
func isDown(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || sqlState(err) == stateCannotConnect
}

// answers notes that a query was answered. If connections took too long before, the database is back. A server that has rejected a connection may
// still answer queries, as a standby does; it says nothing about the primary.
func (c *connector) answers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = time.Now()
	if c.failures > 0 && c.slow {
		c.log.Info("database answers again", "host", c.last.String(), "after", time.Since(c.since).Round(time.Millisecond))
		c.failures = 0
	}
}

// took notes that a host took a connection.
func (c *connector) took(s server) {
	if c.take(s) && c.renewed != nil {
		c.renewed()
	}
}

// take remembers the host, and reports whether it is another one than before, or was down meanwhile.
func (c *connector) take(s server) (renewed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved := c.last != (server{}) && c.last != s
	if c.failures > 0 && c.last != (server{}) {
		c.log.Info("database takes connections again", "host", s.String(), "after", time.Since(c.since).Round(time.Millisecond))
	} else if moved {
		c.log.Info("database moved", "from", c.last.String(), "to", s.String())
	}
	renewed = moved || c.failures > 0 && c.down && c.last != (server{})
	c.failures, c.last, c.connected = 0, s, time.Now()
	return renewed
}

// find returns the host of the URL that a connection leads to.
func (c *connector) find(conn *pgx.Conn) server {
	config := conn.Config()
	first := server{config.Host, config.Port}
	if len(config.Fallbacks) == 0 {
		return first
	}
	address, ok := conn.PgConn().Conn().RemoteAddr().(*net.TCPAddr)
	if !ok {
		return first
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range slices.Concat([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port}}, config.Fallbacks) {
		if int(f.Port) != address.Port {
			continue
		}
		for _, ip := range c.resolved[f.Host] {
			if address.IP.Equal(net.ParseIP(ip)) {
				return server{f.Host, f.Port}
			}
		}
	}
	return first
}

// current names the host that took the last connection.
func (c *connector) current() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.String()
}

// connectTracer tells a connector about all connections, and passes queries to the tracer of the options.
type connectTracer struct {
	pgx.QueryTracer // may be nil
	connector       *connector
}

// TraceQueryStart implements pgx.QueryTracer.
func (t *connectTracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if t.QueryTracer == nil {
		return ctx
	}
	return t.QueryTracer.TraceQueryStart(ctx, conn, data)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t *connectTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if data.Err == nil {
		t.connector.answers()
	}
	if t.QueryTracer != nil {
		t.QueryTracer.TraceQueryEnd(ctx, conn, data)
	}
}

// TraceConnectStart implements pgx.ConnectTracer.
func (t *connectTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return context.WithValue(ctx, connectBegan{}, time.Now())
}

// connectBegan is the key of the time at which an attempt to connect began.
type connectBegan struct{}

// TraceConnectEnd implements pgx.ConnectTracer. A caller that gave up says nothing about the database.
func (t *connectTracer) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	switch {
	case data.Err == nil:
		t.connector.took(t.connector.find(data.Conn))
	case ctx.Err() == nil:
		began, _ := ctx.Value(connectBegan{}).(time.Time)
		t.connector.failed(data.Err, began)
	}
}
