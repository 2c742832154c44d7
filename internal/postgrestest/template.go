package postgrestest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Template describes a database that tests start from: copying a finished one takes a fraction of the time that
// migrating an empty one does.
type Template struct {
	// Content identifies what Prepare makes, such as a hash of all migrations. Templates with the same content are
	// shared between test processes, also those of other checkouts.
	Content string
	// Prepare fills the empty database at the URL and closes its connections.
	Prepare func(ctx context.Context, url string) error
}

// URL creates a copy of the template for the test and returns its URL. The copy goes when the test ends. The first call
// on a server makes the template, which stays for later runs; templates of earlier days are removed.
func (p Template) URL(t testing.TB) string {
	t.Helper()
	server := serverURL(t)
	name, err := p.find(server)
	if err != nil {
		t.Fatalf("make template database: %v", err)
	}
	return create(t, server, " TEMPLATE "+name)
}

const (
	templatePrefix = "godwit_template_"
	templateLock   = 113728124578200 // advisory lock of a process that makes or removes templates
	templateDay    = "20060102"
)

// find returns the name of the template's database. It makes the database under a lock and gives it this name when it is
// complete, so that a process that was killed meanwhile leaves no half-made template.
func (p Template) find(server *url.URL) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	// The day is part of the name because Prepare may make partitions from today on.
	today := time.Now().UTC()
	name := fmt.Sprintf("%s%s_%x", templatePrefix, today.Format(templateDay), sha256.Sum256([]byte(p.Content)))[:60]
	if there, err := exists(ctx, conn, name); err != nil || there {
		return name, err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(templateLock)); err != nil {
		return "", err
	}
	if there, err := exists(ctx, conn, name); err != nil || there { // another process was faster
		return name, err
	}
	if err := removeOld(ctx, conn, today); err != nil {
		return "", err
	}
	draft := name[:50] + "_draft"
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + draft + " WITH (FORCE)", "CREATE DATABASE " + draft} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	if err := p.Prepare(ctx, at(server, draft)); err != nil {
		return "", err
	}
	// Neither renaming nor copying works while a connection that Prepare closed is still ending.
	if _, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = $1`, draft); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+draft+" RENAME TO "+name)
	return name, err
}

func exists(ctx context.Context, conn *pgx.Conn, name string) (there bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&there)
	return there, err
}

// removeOld removes templates that no running test uses: those made before yesterday.
func removeOld(ctx context.Context, conn *pgx.Conn, today time.Time) error {
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE starts_with(datname, $1)`, templatePrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		day, _, _ := strings.Cut(strings.TrimPrefix(name, templatePrefix), "_")
		made, err := time.Parse(templateDay, day)
		if err != nil || !made.Before(today.AddDate(0, 0, -2)) {
			continue
		}
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			return err
		}
	}
	return nil
}
