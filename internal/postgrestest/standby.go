//go:build unix

package postgrestest

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Synchronise makes commits wait for the standbys of c, and returns when they do. A server reads changed settings some time after it was told to;
// until then its commits wait for nothing, and would be lost with it. So it is told first to wait for a standby that does not exist, until a commit is seen to
// wait.
func (c *Cluster) Synchronise() {
	c.t.Helper()
	c.awaitStandbys("absent")
	for !c.commitWaits() {
		continue // each try is a commit
	}
}

// commitWaits makes a commit and reports whether it waited for its standby. If it does, the standbys that there are end the wait.
func (c *Cluster) commitWaits() bool {
	c.t.Helper()
	committed := make(chan error, 1)
	go func() { committed <- c.execute(`COMMENT ON DATABASE postgres IS 'a commit that waits'`) }()
	waits := false
	for {
		select {
		case err := <-committed:
			if err != nil {
				c.t.Fatalf("commit: %v", err)
			}
			return waits
		default:
		}
		n := 0
		if err := c.query(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`, &n); err != nil {
			c.t.Fatalf("look for commits that wait: %v", err)
		}
		if n > 0 && !waits {
			waits = true
			c.awaitStandbys("*")
		}
	}
}

// awaitStandbys changes which standbys commits wait for.
func (c *Cluster) awaitStandbys(names string) {
	c.t.Helper()
	if err := c.execute(`ALTER SYSTEM SET synchronous_standby_names = '`+names+`'`, `SELECT pg_reload_conf()`); err != nil {
		c.t.Fatalf("change the standbys: %v", err)
	}
}

func (c *Cluster) execute(statements ...string) error {
	return c.connected(func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *Cluster) query(sql string, into ...any) error {
	return c.connected(func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(into...) })
}

func (c *Cluster) connected(use func(context.Context, *pgx.Conn) error) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return use(ctx, conn)
}
