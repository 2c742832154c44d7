package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Settings are the settings of a server that matter to an operator, as a session finds them that overrides none.
type Settings struct {
	Fsync, FullPageWrites bool
	SynchronousCommit     string
	Standbys              string        // synchronous_standby_names
	Autovacuum            bool          // autovacuum and track_counts, which it needs
	Admitted              int           // connections that the user may have
	AdmittedBy            string        // the setting that limits them
	Used                  int           // client connections at the moment, of all users
	Pooler                bool          // a pooler in session mode is in front of the server
	Ahead                 time.Duration // of the server's clock to this machine's; negative if it is behind
	Uncertain             time.Duration // by which Ahead may be wrong
}

// ReadSettings reads the settings of a server and changes nothing. It fails for a pooler that Open refuses.
func ReadSettings(ctx context.Context, url string) (Settings, error) {
	var s Settings
	config, err := parseURL(url)
	if err != nil {
		return s, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return s, openFailed("connect to postgres", err)
	}
	defer conn.Close(ctx)
	server, err := examine(ctx, conn)
	if err != nil {
		return s, err
	}
	if s.Pooler = server.pid != conn.PgConn().PID(); s.Pooler {
		if err := checkPooler(ctx, config, conn); err != nil {
			return s, err
		}
	}
	s.Admitted, s.AdmittedBy = server.connections.admitted()
	s.Used = server.connections.used
	err = conn.QueryRow(ctx, `SELECT current_setting('fsync')::bool, current_setting('full_page_writes')::bool, current_setting('synchronous_commit'),
			current_setting('synchronous_standby_names'), current_setting('autovacuum')::bool AND current_setting('track_counts')::bool`).
		Scan(&s.Fsync, &s.FullPageWrites, &s.SynchronousCommit, &s.Standbys, &s.Autovacuum)
	if err != nil {
		return s, failed("read the settings", err)
	}
	return s, s.compareClocks(ctx, conn)
}

// compareClocks asks for the time several times and uses the quickest answer, whose time is known best.
func (s *Settings) compareClocks(ctx context.Context, conn *pgx.Conn) error {
	for i := range 5 {
		var at time.Time
		sent := time.Now()
		if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at); err != nil {
			return failed("read the server's clock", err)
		}
		half := time.Since(sent) / 2
		if i == 0 || half < s.Uncertain {
			s.Ahead, s.Uncertain = at.Sub(sent.Add(half)), half
		}
	}
	return nil
}
