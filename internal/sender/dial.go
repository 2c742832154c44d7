package sender

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A dialer opens connections. An attempt calls it for a link. net/http calls it on its own goroutines, with a context that has
// the request's values but not its deadline: the connection may serve another request.
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
			if tally.tried.Add(1) == 1 {
				tally.resolved.Store(int64(steady()))
			}
			if err != nil {
				tally.blocked.CompareAndSwap(nil, &err)
				tally.refused.Add(1)
			}
		}
		return err
	}
	return dialer{guarded: guarded, proxy: d, timeout: cfg.ConnectTimeout}
}

// A dialTally counts the addresses of one name. A name is reported as blocked if every address tried was blocked: net.Dialer
// returns only the first error, which may be an unreachable IPv6 address before a blocked IPv4 address.
type dialTally struct {
	tried, refused atomic.Int32
	blocked        atomic.Pointer[error]
	resolved       atomic.Int64 // when the first address was tried
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
	return d.dialTimed(ctx, network, addr, &godwit.Timing{})
}

// dialTimed is dial, and adds to the timing of an exchange.
func (d *dialer) dialTimed(ctx context.Context, network, addr string, timing *godwit.Timing) (net.Conn, error) {
	tally := &dialTally{}
	begin := steady()
	defer func() {
		end, resolved := steady(), time.Duration(tally.resolved.Load())
		if resolved == 0 { // no address was found
			resolved = end
		}
		timing.DNS += resolved - begin
		timing.Connect += end - resolved
	}()
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

// dialTLS makes the handshake itself, so that HTTP/1 bytes pass a wire above TLS. HTTP/2 needs the bare *tls.Conn. If the
// request's context offers a connection, dialTLS uses it.
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

// handshake starts TLS on a connection, which it closes on failure.
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

// An offer is a connection that was made for a link and turned out to speak HTTP/2. The request's context carries it to
// net/http's pool, which uses it when it would dial.
type offer struct{ conn atomic.Pointer[tls.Conn] }

type offerKey struct{}

func newOffer(conn *tls.Conn) *offer {
	o := &offer{}
	o.conn.Store(conn)
	return o
}

func (o *offer) take() *tls.Conn { return o.conn.Swap(nil) }

// withdraw closes the connection if it was not used.
func (o *offer) withdraw() {
	if conn := o.take(); conn != nil {
		conn.Close()
	}
}

// dialProxy connects to the egress proxy. The operator chose its address, so the guard does not check it.
func (d *dialer) dialProxy(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.proxy.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newWire(conn, false), nil
}
