package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// newTemplate makes a template of this test alone, and counts how often it is prepared.
func newTemplate(t *testing.T) (Template, *atomic.Int32) {
	t.Helper()
	var prepared atomic.Int32
	p := Template{Content: rand.Text(), Prepare: func(ctx context.Context, url string) error {
		prepared.Add(1)
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "CREATE TABLE prepared AS SELECT 42 AS answer")
		return err
	}}
	t.Cleanup(func() {
		name, err := p.find(serverURL(t))
		if err == nil {
			err = execute(serverURL(t), "DROP DATABASE "+name)
		}
		if err != nil {
			t.Errorf("drop template: %v", err)
		}
	})
	return p, &prepared
}

func TestTemplateIsPreparedOnceAndCopied(t *testing.T) {
	p, prepared := newTemplate(t)
	urls := make([]string, 4)
	var all sync.WaitGroup
	for i := range urls {
		all.Go(func() { urls[i] = p.URL(t) })
	}
	all.Wait()
	for _, url := range urls {
		conn := connect(t, url)
		var answer int
		if err := conn.QueryRow(t.Context(), "SELECT answer FROM prepared").Scan(&answer); err != nil || answer != 42 {
			t.Fatalf("a copy holds %d, error %v", answer, err)
		}
		if _, err := conn.Exec(t.Context(), "DELETE FROM prepared"); err != nil { // concerns this copy alone
			t.Fatal(err)
		}
	}
	if n := prepared.Load(); n != 1 {
		t.Errorf("prepared %d times", n)
	}
}

func TestTemplateThatWasNotFinishedIsMadeAgain(t *testing.T) {
	p, prepared := newTemplate(t)
	broken := Template{Content: p.Content, Prepare: func(ctx context.Context, url string) error {
		return errors.Join(p.Prepare(ctx, url), errors.New("killed"))
	}}
	if _, err := broken.find(serverURL(t)); err == nil {
		t.Fatal("a failed preparation was taken for a template")
	}
	connect(t, p.URL(t))
	if n := prepared.Load(); n != 2 {
		t.Errorf("prepared %d times", n)
	}
}

func TestOldTemplatesAreRemoved(t *testing.T) {
	server := connect(t, os.Getenv(Variable))
	// Other test processes remove old templates, too, when they make one.
	if _, err := server.Exec(t.Context(), "SELECT pg_advisory_lock($1)", int64(templateLock)); err != nil {
		t.Fatal(err)
	}
	old := templatePrefix + "20010203_of_a_test"
	if _, err := server.Exec(t.Context(), "CREATE DATABASE "+old); err != nil {
		t.Fatal(err)
	}
	if err := removeOld(t.Context(), server, time.Date(2001, 2, 5, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(t.Context(), server, old); err != nil || !there {
		t.Fatalf("a template of the day before yesterday is there: %v, error %v", there, err)
	}
	if err := removeOld(t.Context(), server, time.Date(2001, 2, 6, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(t.Context(), server, old); err != nil || there {
		t.Fatalf("an old template is there: %v, error %v", there, err)
	}
}
