//go:build unix

package postgrestest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/postgrestest"
)

// What was committed survives a kill of the primary and the promotion of its synchronous standby; the old primary follows then.
func TestClusterFailsOver(t *testing.T) {
	primary := postgrestest.NewCluster(t)
	standby := primary.Standby(t.TempDir())
	statement := func(c *postgrestest.Cluster, sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), c.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	primary.Synchronise()
	statement(primary, "CREATE TABLE kept (n int)")
	primary.Kill()
	primary.Kill() // nothing to do
	if primary.Running() || !standby.Running() {
		t.Fatal("the wrong server runs")
	}
	standby.Promote()
	statement(standby, "ALTER SYSTEM SET synchronous_standby_names = ''")
	statement(standby, "SELECT pg_reload_conf()")
	statement(standby, "INSERT INTO kept VALUES (1)")
	primary.Follow(standby)
	statement(primary, "SELECT * FROM kept")
}
