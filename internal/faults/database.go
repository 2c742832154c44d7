//go:build unix

package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/postgrestest"
)

// A Database is a PostgreSQL primary with a synchronous standby, each on a disk of its own. A failover exchanges their parts.
type Database struct {
	t       testing.TB
	servers [2]*postgrestest.Cluster
	disks   [2]*Disk

	mu      sync.Mutex
	primary int // index of the server that takes writes
}

// NewDatabase starts both servers. They end with the test.
func NewDatabase(t testing.TB) *Database {
	t.Helper()
	d := &Database{t: t, disks: [2]*Disk{NewDisk(t), NewDisk(t)}}
	// A primary that crashes removes what it needs no longer of its log, and a standby that is still reconnecting could never follow again.
	d.servers[0] = postgrestest.NewClusterIn(t, d.disks[0].Dir, "wal_keep_size = 1GB",
		"max_connections = 200", "shared_buffers = 64MB", "wal_sender_timeout = 10s", "max_wal_size = 256MB", "log_min_messages = warning")
	d.servers[1] = d.servers[0].Standby(d.disks[1].Dir)
	d.Primary().Synchronise()
	return d
}

// Addresses are those of both servers, in a fixed order.
func (d *Database) Addresses() []string {
	return []string{d.servers[0].Address(), d.servers[1].Address()}
}

// Primary is the server that takes writes.
func (d *Database) Primary() *postgrestest.Cluster { return d.servers[d.index()] }

func (d *Database) standby() *postgrestest.Cluster { return d.servers[1-d.index()] }

// Disk is the disk of the primary.
func (d *Database) Disk() *Disk { return d.disks[d.index()] }

func (d *Database) index() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.primary
}

// Restart starts the primary again, if it is down.
func (d *Database) Restart() {
	d.t.Helper()
	if !d.Primary().Running() {
		d.Primary().Start()
	}
}

// FailOver kills the primary and promotes the standby. Rejoin makes the old primary the standby of the new one.
func (d *Database) FailOver() {
	d.t.Helper()
	d.Primary().Kill()
	d.standby().Promote()
	d.mu.Lock()
	d.primary = 1 - d.primary
	d.mu.Unlock()
	d.set("")
}

// Rejoin makes the server that was killed the synchronous standby.
func (d *Database) Rejoin() {
	d.t.Helper()
	d.standby().Follow(d.Primary())
	d.Primary().Synchronise()
}

// set changes which standbys commits wait for.
func (d *Database) set(standbys string) {
	d.t.Helper()
	for _, statement := range []string{fmt.Sprintf("ALTER SYSTEM SET synchronous_standby_names = '%s'", standbys), "SELECT pg_reload_conf()"} {
		if err := d.Query(statement); err != nil {
			d.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Query runs a statement on the primary, and scans its row if there are places for it.
func (d *Database) Query(statement string, into ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.Primary().URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if len(into) == 0 {
		_, err = conn.Exec(ctx, statement)
		return err
	}
	return conn.QueryRow(ctx, statement).Scan(into...)
}

// Hold opens a snapshot, which keeps vacuum from removing rows, until release is called.
func (d *Database) Hold() (release func(), err error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.Primary().URL())
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM leases"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			conn.Close(ctx)
			return nil, err
		}
	}
	return func() { conn.Close(ctx) }, nil
}

// patience bounds waits that end far sooner; it is no part of a result.
const patience = 5 * time.Minute
