package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/collector"
	"github.com/godwit-hq/godwit/internal/config"
)

type serveCommand struct {
	config.FileFlag `embed:""`
	config.Config   `embed:""`
}

// Help returns the text that --help shows.
func (serveCommand) Help() string {
	return `Every setting has a default: without flags, the server keeps an embedded database in ./godwit-data and listens on 127.0.0.1:8080.
Create the first API key with "godwit keys create", before the start or while the server runs.

If its PostgreSQL database is away, the server waits for it: /healthz answers 200, everything else 503.

The server stops on SIGTERM or Ctrl-C: /readyz answers 503, requests are still answered for --stop-delay, then the server accepts
nothing new, and requests in flight may finish within --drain-timeout. A second signal ends the delay, the next one ends the server at
once; no acknowledged event is lost.

Examples:

    godwit keys create --tenant-name acme --scopes ingest,read,manage
    godwit serve --listen :8080 --data /var/lib/godwit
    godwit serve --store postgres://godwit@db/godwit --keyring-file /etc/godwit/keyring
    godwit serve --acme-domains hooks.example.com --listen :443
    godwit serve --config /etc/godwit.yaml

"godwit doctor" with the same flags checks the machine and the configuration first.`
}

func (c *serveCommand) Run(env *environment) error {
	origins, err := env.source.Origins(env.parsed)
	if err != nil {
		return err
	}
	relaxCollector(env)
	log := app.NewLogger(c.Log, env.stderr)
	for _, name := range config.UnknownEnv(os.Environ()) {
		log.Warn("no setting is called so; it has no effect", "variable", name)
	}
	env.stopDelay.Store(int64(c.StopDelay))
	a, err := app.New(env.ctx, c.Config, app.Dependencies{Log: log, Wait: true, Hurry: env.hurry, Origins: origins})
	if err != nil && env.ctx.Err() != nil {
		log.Info("stopped before it served", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	go releaseGarbage(env.ctx, a.Ready())
	return a.Run(env.ctx)
}

// releaseGarbage returns the memory of the start to the system: reading many endpoints leaves about as much garbage as it keeps, and an idle
// server would hold it for long. It costs one collection.
func releaseGarbage(ctx context.Context, ready <-chan struct{}) {
	select {
	case <-ready:
		debug.FreeOSMemory()
	case <-ctx.Done():
	}
}

// relaxCollector relaxes the garbage collector. It leaves a GOGC that the operator has set.
func relaxCollector(env *environment) {
	if _, set := env.lookup("GOGC"); !set {
		collector.Relax()
	}
}
