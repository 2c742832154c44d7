package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/backup"
	"github.com/godwit-hq/godwit/internal/config"
)

type backupCommand struct {
	Into            string `arg:"" help:"Directory to write. It must not exist." placeholder:"DIR"`
	WithoutKeys     bool   `name:"without-keys" help:"Leave out the key ring and the evidence key, to keep them in another place."`
	JSON            bool   `name:"json" help:"Print the description of the backup as one JSON object."`
	EvidenceKey     string `name:"commands-evidence-key" placeholder:"FILE"`
	config.FileFlag `embed:""`
	config.Storage  `embed:""`
}

// Help returns the text that --help shows.
func (backupCommand) Help() string {
	return `Copies the data of a server on SQLite, which may be running: the database as it is when the command begins, the key ring, the evidence key
and certificates. Everything that was acknowledged before is in the backup. The copy is checked (integrity_check, and that the key ring opens
its secrets) and synced before it gets its name, so there is no half backup. Whoever reads a backup with its keys can read all secrets:
protect it, or keep the keys elsewhere (--without-keys).

Run it as the user of the server. The database's log (godwit.db-wal) grows while it runs. On PostgreSQL use pg_dump or pg_basebackup.

Examples:

    godwit backup /backup/godwit-$(date +%F)
    godwit backup --data /var/lib/godwit --without-keys /backup/godwit-$(date +%F)
    godwit restore /backup/godwit-2026-06-01 --data /var/lib/godwit`
}

func (c *backupCommand) Run(env *environment) error {
	if _, err := env.source.Origins(env.parsed); err != nil {
		return err
	}
	if err := c.Storage.Check(); err != nil {
		return err
	}
	if c.Postgres() {
		return errors.New(backup.Advice)
	}
	m, err := backup.Write(env.ctx, backup.Options{
		Storage: c.Storage, EvidenceKey: c.EvidenceKey, Into: c.Into, WithoutKeys: c.WithoutKeys,
		Progress: pageProgress(env.stderr), Log: app.NewLogger(config.Log{Format: "text"}, env.stderr),
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env.stdout, m)
	}
	var size int64
	for _, f := range m.Files {
		size += f.Size
	}
	fmt.Fprintf(env.stdout, "wrote %s: %d files, %.1f MB, schema version %d; checked\n", c.Into, len(m.Files), float64(size)/1e6, m.Schema)
	return nil
}

// pageProgress prints how far a copy is, every few seconds.
func pageProgress(w io.Writer) func(done, total int) {
	next := time.Now().Add(progressEvery)
	return func(done, total int) {
		if now := time.Now(); total > 0 && now.After(next) {
			next = now.Add(progressEvery)
			fmt.Fprintf(w, "%d of %d pages copied (%d %%)\n", done, total, 100*done/total)
		}
	}
}

type restoreCommand struct {
	From            string `arg:"" help:"Directory that \"godwit backup\" wrote." placeholder:"DIR"`
	Force           bool   `name:"force" help:"Restore into a data directory that is not empty: its files are set aside in it, none is deleted."`
	JSON            bool   `name:"json" help:"Print the description of the backup as one JSON object."`
	config.FileFlag `embed:""`
	config.Storage  `embed:""`
}

// Help returns the text that --help shows.
func (restoreCommand) Help() string {
	return `Brings a backup into the data directory. It refuses a directory that a server uses, one that is not empty (see --force), and a backup with a
byte that is not as it was written. The database comes last, so that an interrupted restore can be repeated.

The server then goes on from the moment of the backup: deliveries that were pending are sent, also those that were sent since, with the same
idempotency keys. API keys that were revoked since are valid again, and endpoints that were deleted are back. docs/operations.md says more. Never run the
old server beside the restored one.

Examples:

    godwit restore /backup/godwit-2026-06-01 --data /var/lib/godwit
    godwit restore /backup/godwit-2026-06-01 --data /var/lib/godwit --force`
}

func (c *restoreCommand) Run(env *environment) error {
	if _, err := env.source.Origins(env.parsed); err != nil {
		return err
	}
	if err := c.Storage.Check(); err != nil {
		return err
	}
	if c.Postgres() {
		return errors.New(backup.Advice)
	}
	r, err := backup.Restore(env.ctx, backup.Restoration{From: c.From, Data: c.Data, Force: c.Force})
	if err != nil {
		return err
	}
	if r.SetAside != "" {
		fmt.Fprintf(env.stderr, "the files that were there are in %s\n", r.SetAside)
	}
	if r.WithoutRing && c.Keyring == "" && c.KeyringFile == "" {
		fmt.Fprintf(env.stderr, "the backup has no key ring: put the server's own into %s before you start it, or set --keyring-file\n", c.Data)
	}
	if c.JSON {
		return printJSON(env.stdout, r.Manifest)
	}
	fmt.Fprintf(env.stdout, "restored %s, which is of %s, into %s\n", c.From, r.Manifest.CreatedAt.Format(time.RFC3339), c.Data)
	return nil
}
