package sender

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// A dialer opens connections. For a link it is called by the attempt; for net/http on goroutines of its own, with a context
// that carries the request's values but not its deadline: a connection may serve another request than the one that asked.
type dialer struct {
	guarded net.Dialer // to receivers
	proxy   net.Dialer // to the egress proxy
	timeout time.Duration
}

func newDialer(cfg Config, g guard) dialer {
	d := net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: 15 * time.Second, Resolver: cfg.Resolver}
	guarded := d
	guarded.ControlContext = func(ctx context.Context, network, address string, _ syscall.RawConn) error {
		err := g.control(network, address)
		if tally, ok := ctx.Value(tallyKey{}).(*dialTally); ok {
			tally.tried.Add(1)
			if err != nil {
				tally.blocked.CompareAndSwap(nil, &err)
				tally.refused.Add(1)
			}
		}
		return err
	}
	return dialer{guarded: guarded, proxy: d, timeout: cfg.ConnectTimeout}
}

// A dialTally counts the addresses of one name. A name is reported as blocked when every address tried was: net.Dialer
// returns the first error alone, which may be an unreachable IPv6 address before a blocked IPv4 one, or the reverse.
type dialTally struct {
	tried, refused atomic.Int32
	blocked        atomic.Pointer[error]
}

type tallyKey struct{}

var errSomeBlocked = errors.New("no address could be connected to; some are not permitted destinations")

// A dialError says how far a connection got.
type dialError struct {
	tls bool // connected; the TLS handshake failed
	err error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	tally := &dialTally{}
	conn, err := d.guarded.DialContext(context.WithValue(ctx, tallyKey{}, tally), network, addr)
	if err == nil {
		return conn, nil
	}
	if first := tally.blocked.Load(); first != nil {
		err = errSomeBlocked
		if tally.refused.Load() == tally.tried.Load() {
			err = *first
		}
	}
	return nil, &dialError{err: err}
}

func (d *dialer) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newWire(conn, true), nil
}

// dialTLS makes the handshake here rather than leave it to net/http, so that HTTP/1 bytes pass a wire above TLS. HTTP/2 needs
// the bare *tls.Conn. A connection that the request has brought along is taken instead of a new one.
func (d *dialer) dialTLS(cfg *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if o, ok := ctx.Value(offerKey{}).(*offer); ok {
			if conn := o.take(); conn != nil {
				return conn, nil
			}
		}
		conn, err := d.dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		secure, err := d.handshake(ctx, conn, addr, cfg)
		switch {
		case err != nil:
			return nil, err
		case speaksHTTP2(secure):
			return secure, nil
		}
		return newWire(secure, true), nil
	}
}

// handshake puts TLS over a connection, which it closes when that fails.
func (d *dialer) handshake(ctx context.Context, conn net.Conn, addr string, cfg *tls.Config) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		conn.Close()
		return nil, &dialError{err: err}
	}
	cfg = cfg.Clone()
	cfg.ServerName = host
	secure := tls.Client(conn, cfg)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, &dialError{tls: true, err: err}
	}
	return secure, nil
}

func speaksHTTP2(c *tls.Conn) bool { return c.ConnectionState().NegotiatedProtocol == "h2" }

// An offer is a connection made for a link over which the receiver turned out to speak HTTP/2. It travels in the context of
// the request to net/http's pool, which takes it when it wants to dial.
type offer struct{ conn atomic.Pointer[tls.Conn] }

type offerKey struct{}

func newOffer(conn *tls.Conn) *offer {
	o := &offer{}
	o.conn.Store(conn)
	return o
}

func (o *offer) take() *tls.Conn { return o.conn.Swap(nil) }

// withdraw closes the connection if nobody took it.
func (o *offer) withdraw() {
	if conn := o.take(); conn != nil {
		conn.Close()
	}
}

// dialProxy connects to the egress proxy. Its address is the operator's choice, so the guard has no say.
func (d *dialer) dialProxy(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.proxy.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newWire(conn, false), nil
}
