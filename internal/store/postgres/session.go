package postgres

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout limits the attempt to connect to one host. With several hosts the next one is waiting.
const (
	connectTimeout     = 10 * time.Second
	connectTimeoutEach = 3 * time.Second
)

// parseURL hides the driver's error: it quotes the URL, which may contain a password.
func parseURL(text string) (*pgxpool.Config, error) {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, errors.New("open postgres: not a URL such as postgres://user:password@host:5432/database")
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, errors.New("open postgres: a setting in the URL is not valid")
	}
	config.ConnConfig.RuntimeParams["application_name"] = "godwit"
	several := severalHosts(config.ConnConfig)
	if several && !namesSessionAttributes(text) {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
		if several {
			config.ConnConfig.ConnectTimeout = connectTimeoutEach
		}
	}
	config.ConnConfig.DialFunc = dialer(config.ConnConfig.ConnectTimeout).DialContext
	config.PingTimeout = config.ConnConfig.ConnectTimeout
	config.MaxConnLifetimeJitter = config.MaxConnLifetime / 4 // the connections of a node, and of all nodes, do not end together
	return config, nil
}

func severalHosts(config *pgx.ConnConfig) bool {
	return slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != config.Host || f.Port != config.Port
	})
}

// namesSessionAttributes reports whether the URL chooses among its hosts itself. The part before the question mark need not be
// a URL that package url reads: it may list several hosts.
func namesSessionAttributes(text string) bool {
	_, query, _ := strings.Cut(text, "?")
	values, err := url.ParseQuery(query)
	return err == nil && values.Has("target_session_attrs")
}

// A demoted server rejects writes, and one that shuts down or starts ends its sessions: the next connection may find the new
// primary, so this one must not be used again.
func endsSession(err *pgconn.PgError) bool {
	switch err.Code {
	case stateReadOnly, stateAdminShutdown, stateCrashShutdown, stateCannotConnect:
		return true
	}
	return strings.EqualFold(err.SeverityUnlocalized, "FATAL")
}

// watchSessions closes the connections to a server that is no longer the primary, and notes commits that were not replicated.
func (d *database) watchSessions(config *pgx.ConnConfig) {
	config.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) (keep bool) {
		switch err.Code {
		case stateReadOnly, stateAdminShutdown, stateCrashShutdown:
			d.forget()
		}
		return !endsSession(err)
	}
	config.OnNotice = d.noteUnreplicated
}

// forget closes all connections once they are idle. It is called when a server refuses a write, and when a connection leads to another
// server than the one before: connections that only read would get no error from a server that was fenced, and go on reading what it knew last.
// It is also called when the server ends a session, and when it takes connections again after it was down: the other connections are dead as well, and each
// would fail the first request that uses it.
func (d *database) forget() {
	if d.open.Load() {
		d.hot.Reset()
		d.pool.Reset()
	}
}

// hangUp closes a connection outside the pools. A server that is out of reach does not answer, so it waits no longer than a second.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the connection is gone either way
}

// connect makes a connection outside the pools, under the rules of the connector.
func (d *database) connect(ctx context.Context) (*pgx.Conn, error) {
	config := d.pool.Config().ConnConfig.Copy()
	if err := d.connector.before(ctx, config); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// noteUnreplicated notes that a commit did not wait for its synchronous standby. If the wait is cancelled, by statement_timeout
// or an operator, PostgreSQL reports the commit as successful and adds a warning only. The warning has no SQLSTATE of its own; the
// function that raises it has had the same name since PostgreSQL 9.1.
func (d *database) noteUnreplicated(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		d.replication.missed.Add(1)
	}
}

// errUnreplicated reports a commit that a failover would lose.
var errUnreplicated = errors.New("a commit was not replicated to the synchronous standby")

// replication counts commits that did not wait for their synchronous standby.
type replication struct {
	missed atomic.Int64 // warnings so far
	made   atomic.Int64 // warnings whose commits have reached the standby since

	mu sync.Mutex // held by the connection that writes once more
}

// awaitReplicas is called after a commit. If a commit did not wait for its standby, awaitReplicas writes once more, which waits for
// everything before it. A batch that is merely committed again may have nothing to write, and would then wait for nothing. Until
// that write has succeeded no other connection acknowledges anything either: the warning may be about its commit.
func (d *database) awaitReplicas(ctx context.Context, conn *pgx.Conn) error {
	r := &d.replication
	if r.missed.Load() == r.made.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	missed := r.missed.Load()
	if missed == r.made.Load() {
		return nil // another connection has done it
	}
	if _, err := conn.Exec(ctx, writeProbe); err != nil {
		return err
	}
	if r.missed.Load() != missed {
		return errUnreplicated
	}
	r.made.Store(missed)
	return nil
}
