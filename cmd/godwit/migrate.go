package main

import (
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
)

type migrateCommand struct {
	Status migrateStatusCommand `cmd:"" default:"withargs" help:"Show the schema version and the missing migrations."`
	Up     migrateUpCommand     `cmd:"" help:"Bring the schema up to date."`
}

// Help returns the text that --help shows.
func (migrateCommand) Help() string {
	return `A server upgrades the schema when it starts. This command shows first what an upgrade would do, or does it at a time of your
choice. There are no downgrades. This binary accepts a database with a newer schema only if the newer migrations permit it: so
nodes of two successive releases can run together while you upgrade them one by one.

Examples:

    godwit migrate
    godwit migrate up --store postgres://godwit@db/godwit`
}

type migrateStatusCommand struct {
	JSON            bool `name:"json" help:"Print one JSON object."`
	config.FileFlag `embed:""`
	config.Storage  `embed:""`
}

func (c *migrateStatusCommand) Run(env *environment) error {
	if _, err := env.source.Origins(env.parsed); err != nil {
		return err
	}
	if err := c.Storage.Check(); err != nil {
		return err
	}
	s, err := app.ReadSchema(env.ctx, &c.Storage)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env.stdout, s)
	}
	fmt.Fprintf(env.stdout, "the database has schema version %d, this binary knows %d\n", s.Version, s.Current)
	switch {
	case s.Version > s.Current && s.Usable:
		fmt.Fprintln(env.stdout, "nothing to do: the database is newer, and programs of this version may run beside newer ones")
	case s.Version > s.Current:
		return errors.New("the database is newer than this binary: use the release that wrote it, or a later one")
	case s.Version == s.Current:
		fmt.Fprintln(env.stdout, "nothing to do")
	default:
		fmt.Fprintf(env.stdout, "missing: %d; run \"godwit migrate up\", or start the server\n", s.Current-s.Version)
	}
	return nil
}

type migrateUpCommand struct {
	config.FileFlag `embed:""`
	config.Storage  `embed:""`
}

func (c *migrateUpCommand) Run(env *environment) error {
	if _, err := env.source.Origins(env.parsed); err != nil {
		return err
	}
	if err := c.Storage.Check(); err != nil {
		return err
	}
	log := app.NewLogger(config.Log{Format: "text"}, env.stderr)
	if !c.Postgres() {
		// An embedded database without a key ring looks like one that has lost it: create the ring first, as a server
		// does.
		if _, err := app.OpenRing(&c.Storage, log); err != nil {
			return err
		}
	}
	st, err := app.OpenStore(env.ctx, &c.Storage, log)
	if err != nil {
		return err
	}
	defer st.Close()
	d, err := st.Describe(env.ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s %s: schema version %d, up to date\n", d.Backend, d.Location, d.SchemaVersion)
	return nil
}
