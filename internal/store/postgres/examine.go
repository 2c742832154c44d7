package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// oldestServer is the first version with all features that this package uses.
const oldestServer = 150000

// prepareDatabase examines the server and migrates, on a separate connection.
func prepareDatabase(ctx context.Context, config *pgxpool.Config, o *Options) error {
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return openFailed("connect to postgres", err)
	}
	defer conn.Close(ctx)
	server, err := examine(ctx, conn)
	if err != nil {
		return err
	}
	if err := server.check(); err != nil {
		return err
	}
	if server.pid != conn.PgConn().PID() { // the process behind this connection is not the one that was announced
		if err := checkPooler(ctx, config, conn); err != nil {
			return err
		}
	}
	if err := server.connections.check(o.Budget(), o.Log); err != nil {
		return err
	}
	return migrate(ctx, conn)
}

// A serverInfo is what matters of a server before it is used.
type serverInfo struct {
	number            int
	version, encoding string
	pid               uint32 // of the process that answered
	connections       connectionLimit
}

// examine asks in the simple protocol: a pooler in transaction mode may not know prepared statements.
func examine(ctx context.Context, conn *pgx.Conn) (serverInfo, error) {
	var s serverInfo
	l := &s.connections
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
			current_setting('server_encoding'), pg_backend_pid()::int8, current_setting('max_connections')::int,
			current_setting('superuser_reserved_connections')::int + coalesce(nullif(current_setting('reserved_connections', true), ''), '0')::int,
			coalesce((SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), -1),
			coalesce((SELECT datconnlimit FROM pg_database WHERE datname = current_database()), -1),
			(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`,
		pgx.QueryExecModeSimpleProtocol).
		Scan(&s.number, &s.version, &s.encoding, &s.pid, &l.most, &l.reserved, &l.role, &l.database, &l.used)
	return s, openFailed("ask postgres for its version", err)
}

func (i serverInfo) check() error {
	if i.number < oldestServer {
		return fmt.Errorf("open postgres: the server is PostgreSQL %s, but 15 or newer is needed", i.version)
	}
	if i.encoding != "UTF8" {
		return fmt.Errorf("open postgres: the database has encoding %s, but UTF8 is needed", i.encoding)
	}
	return nil
}

// A connectionLimit is how many connections the server admits. A limit of -1 is none.
type connectionLimit struct {
	most, reserved int // max_connections, and those of them kept for superusers
	role, database int // limits of the user and of the database
	used           int // client connections at the moment, of all users
}

// admitted returns the number that ordinary users share, and which setting limits it.
func (l connectionLimit) admitted() (n int, setting string) {
	n, setting = l.most-l.reserved, "max_connections"
	if l.role >= 0 && l.role < n {
		n, setting = l.role, "the role's CONNECTION LIMIT"
	}
	if l.database >= 0 && l.database < n {
		n, setting = l.database, "the database's CONNECTION LIMIT"
	}
	return n, setting
}

// check refuses a server that could never carry the connections of this node, and warns if it cannot do so now.
func (l connectionLimit) check(budget int, log *slog.Logger) error {
	n, setting := l.admitted()
	if budget > n {
		return fmt.Errorf("open postgres: this node may use %d connections, but the server admits %d to this user (%s); raise that, or lower --store-connections",
			budget, n, setting)
	}
	if free := l.most - l.reserved - l.used; free < budget {
		log.Warn("the database may run out of connections; raise max_connections or lower --store-connections of the nodes",
			"needed", budget, "free", free, "max_connections", l.most, "reserved", l.reserved, "used", l.used)
	}
	return nil
}

// poolerPatience is how long a pooler may take to find a server connection.
const poolerPatience = 10 * time.Second

var errTransactionMode = errors.New("open postgres: the connection pooler in front of the database shares its server connections between transactions " +
	"(transaction or statement mode); godwit keeps locks, settings and prepared statements in its sessions: use pool_mode=session for its database, or connect " +
	"to the server directly")

// checkPooler refuses a pooler that gives one server connection to several clients. Two clients ask in turns which process answers
// them: in session mode, each has one process, and no other client has it.
func checkPooler(ctx context.Context, config *pgxpool.Config, first *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, poolerPatience)
	defer cancel()
	second, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return openFailed("connect to postgres a second time", err)
	}
	defer second.Close(context.WithoutCancel(ctx))
	seen := map[*pgx.Conn]uint32{}
	// A pooler may hand out the connection that was idle last, or longest. This order reveals both.
	for _, conn := range []*pgx.Conn{first, second, second, first, second, first} {
		var pid uint32
		if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()::int8`, pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
			return failed("ask the connection pooler for a second connection", err)
		}
		if before, known := seen[conn]; known && before != pid {
			return errTransactionMode
		}
		seen[conn] = pid
	}
	if seen[first] == seen[second] {
		return errTransactionMode
	}
	return nil
}

// openFailed is failed for the first connections of a store. An error that only an operator can mend, such as a wrong password,
// user, database or certificate, does not count as temporary then. While the store is in use it does: the store was right before.
func openFailed(doing string, err error) error {
	if err != nil && lasting(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return failed(doing, err)
}

// lasting reports whether every cause that it knows is a refusal. One host may refuse while another one, which is away, would not.
func lasting(err error) bool {
	refused := false
	for cause := range causes(err) {
		switch e := cause.(type) {
		case *pgconn.PgError:
			switch {
			case e.Code[:2] == "28" || e.Code == stateNoDatabase || e.Code == stateNoPrivilege:
				refused = true
			case passing[e.Code[:2]]:
				return false
			}
		case *net.OpError, *net.DNSError:
			return false
		case x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError:
			refused = true
		}
	}
	return refused
}

// causes yields an error and all errors that it wraps.
func causes(err error) func(yield func(error) bool) {
	return func(yield func(error) bool) {
		queue := []error{err}
		for len(queue) > 0 {
			next := queue[0]
			queue = queue[1:]
			if !yield(next) {
				return
			}
			switch wrapped := next.(type) {
			case interface{ Unwrap() error }:
				if inner := wrapped.Unwrap(); inner != nil {
					queue = append(queue, inner)
				}
			case interface{ Unwrap() []error }:
				queue = append(queue, wrapped.Unwrap()...)
			}
		}
	}
}
