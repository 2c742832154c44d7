package main

import (
	"os"
	"runtime/debug"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
)

type serveCommand struct {
	config.FileFlag `embed:""`
	config.Config   `embed:""`
}

// Help returns the text that --help shows.
func (serveCommand) Help() string {
	return `Everything has a sound default: without a flag it keeps an embedded database in ./godwit-data and listens on
127.0.0.1:8080. Make a first API key with "godwit keys create", before or while it runs.

It stops on SIGTERM or Ctrl-C: /readyz turns 503, nothing new is taken in, requests in flight may finish within
--drain-timeout. A second signal ends it at once, which loses nothing that was acknowledged.

Examples:

    godwit keys create --tenant-name acme --scopes ingest,read,manage
    godwit serve --listen :8080 --data /var/lib/godwit
    godwit serve --store postgres://godwit@db/godwit --keyring-file /etc/godwit/keyring
    godwit serve --acme-domains hooks.example.com --listen :443
    godwit serve --config /etc/godwit.yaml

"godwit doctor" with the same flags checks the machine and the configuration first.`
}

func (c *serveCommand) Run(env *environment) error {
	if _, err := env.source.Origins(env.parsed); err != nil {
		return err
	}
	relaxCollector(env)
	log := app.NewLogger(c.Log, env.stderr)
	for _, name := range config.UnknownEnv(os.Environ()) {
		log.Warn("no setting is called so; it has no effect", "variable", name)
	}
	a, err := app.New(env.ctx, c.Config, app.Dependencies{Log: log})
	if err != nil {
		return err
	}
	return a.Run(env.ctx)
}

// relaxCollector lets the heap grow to five times its live size before a collection. The live heap is some ten megabytes,
// so this buys speed for little memory. It leaves a GOGC that the operator has set.
func relaxCollector(env *environment) {
	if _, set := env.lookup("GOGC"); !set {
		debug.SetGCPercent(400)
	}
}
