package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// devCommand has its own flags: a developer's trial must not use the settings of a production server.
type devCommand struct {
	Listen    string  `name:"listen" local:"" help:"Address to serve on. Defaults to 127.0.0.1:8080, or a free port when that is taken." placeholder:"HOST:PORT"`
	Data      string  `name:"data" local:"" help:"Directory to keep data in. Defaults to a temporary one, removed at exit." placeholder:"DIR"`
	Store     string  `name:"store" local:"" help:"\"sqlite\", or the URL of a PostgreSQL database." default:"sqlite" placeholder:"sqlite|URL"`
	Node      string  `name:"node" local:"" help:"Name of this process among those that share a PostgreSQL database. Defaults to the host's name." placeholder:"NAME"`
	NoSamples bool    `name:"no-samples" help:"Start no sample endpoint and post no sample events."`
	JSON      bool    `name:"json" help:"Print JSON: first an object with url, tenant, api_key and dashboard (a link that signs in once), then one for each attempt."`
	TimeScale float64 `name:"time-scale" help:"Run retry delays, windows and retentions this many times faster." default:"1" placeholder:"N"`
	Limits    bool    `name:"limits" help:"Keep the limits on registrations that a production server has."`
	Commands  string  `name:"commands" help:"JSON file that declares commands for your own services; docs/commands.md describes it." placeholder:"FILE"`
	Verbose   bool    `name:"verbose" short:"v" help:"Log more, on standard error."`
}

// Help returns the text that --help shows.
func (devCommand) Help() string {
	return `Runs the real server on an embedded database, makes a tenant and an API key with all rights, starts a sample endpoint
that fails about one time in three and posts a sample event every second. Each attempt is a line: watch failures being
retried until they succeed. http:// and loopback addresses are allowed as endpoints, unlike in production, and the limits on
registrations are lifted unless --limits is given.

The same tenant is reached through each API with the same key:

    native                /v1                   profile eds, or any other: "profile":"standard-webhooks"
    Open Job Spec         /ojs/v1/webhooks      profile ojs
    CYBERCUBE webhooks    /api/v1/webhooks      profile cybercube

Examples:

    godwit dev
    godwit dev --no-samples --data ./trial
    godwit dev --time-scale 1000            a schedule of a day in a minute and a half
    godwit dev --json | jq .
    godwit dev --store postgres://postgres@127.0.0.1/postgres`
}

// devRing seals the values of a trial on PostgreSQL without a data directory. It is not secret. It is fixed, because a
// later trial on the same database must read what an earlier one wrote.
const devRing = "dev:Z29kd2l0IGRldjogdGhpcyBrZXkgaXMgbm8gc2VjcmU="

func (c *devCommand) Run(env *environment) error {
	if c.TimeScale < 0.001 || c.TimeScale > 1e6 {
		return errors.New("--time-scale: must be between 0.001 and 1000000")
	}
	cfg, remove, err := c.config()
	if err != nil {
		return err
	}
	defer remove()
	log := app.NewLogger(cfg.Log, env.stderr)
	a, err := c.open(env.ctx, cfg, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(env.ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx); stop() }()
	err = c.attend(ctx, env, a)
	stop()
	return errors.Join(<-ended, err)
}

func (c *devCommand) config() (cfg config.Config, remove func(), err error) {
	cfg, remove = config.Default(), func() {}
	cfg.Listen, cfg.Data, cfg.Store, cfg.Node = c.Listen, c.Data, c.Store, c.Node
	cfg.AllowHTTP, cfg.Commands.Probe, cfg.Commands.File = true, true, c.Commands
	for _, n := range []string{"127.0.0.0/8", "::1/128"} {
		var network config.Network
		if err := network.UnmarshalText([]byte(n)); err != nil {
			return cfg, remove, err
		}
		cfg.AllowAddress = append(cfg.AllowAddress, network)
	}
	cfg.Log.Level = slog.LevelWarn
	if c.Verbose {
		cfg.Log.Level = slog.LevelDebug
	}
	if cfg.Postgres() && c.Data == "" {
		cfg.Keyring = devRing
	}
	if c.Data == "" {
		if cfg.Data, err = os.MkdirTemp("", "godwit-dev-"); err != nil {
			return cfg, remove, err
		}
		remove = func() { os.RemoveAll(cfg.Data) }
		// A key made here causes no warning. On PostgreSQL a later trial must sign with the same key.
		seed := ""
		if cfg.Postgres() {
			seed = devRing
		}
		if err := app.EnsureEvidenceKey(cfg.Data, seed); err != nil {
			return cfg, remove, err
		}
		if cfg.Keyring == "" {
			cfg.Keyring = app.GenerateRing()
		}
	} else if cfg.Postgres() {
		cfg.KeyringFile = filepath.Join(c.Data, "keyring")
		if err := app.EnsureRing(cfg.KeyringFile); err != nil {
			return cfg, remove, err
		}
	}
	return cfg, remove, nil
}

// open starts the app on the wanted address. By default that is the usual one, or any free one if it is taken: a trial
// should not fail because another program uses the port.
func (c *devCommand) open(ctx context.Context, cfg config.Config, log *slog.Logger) (*app.App, error) {
	d := app.Dependencies{Log: log, TimeScale: godwit.TimeScale(c.TimeScale), NoLimits: !c.Limits, TuneCommands: dieAt(os.Getenv(faultVariable))}
	if c.Listen == "" {
		cfg.Listen = config.Default().Listen
		if l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
			cfg.Listen = "127.0.0.1:0"
		} else {
			l.Close()
		}
	}
	return app.New(ctx, cfg, d)
}

// attend creates the tenant and the key, prints them, and prints the attempts until ctx ends.
func (c *devCommand) attend(ctx context.Context, env *environment, a *app.App) error {
	if !awaitReady(ctx, a) {
		return nil
	}
	tenant, err := app.TenantByName(ctx, a.Management(), "dev")
	if err != nil {
		return err
	}
	key, token, err := a.Management().Keys.Create(ctx, nil, tenant.ID, management.KeySpec{Name: "godwit dev", Scopes: godwit.AllScopes})
	if err != nil {
		return err
	}
	_, code, err := a.Management().Sessions.Link(ctx, key, management.DevLinkLife)
	if err != nil {
		return err
	}
	cl, err := client.New(a.URL(), token)
	if err != nil {
		return err
	}
	// The server ends the stream once it has drained, so that the last attempts are also printed.
	attempts, err := cl.Attempts(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("follow attempts: %w", err)
	}
	defer attempts.Close()
	if err := c.welcome(env, a, tenant.ID.String(), token, a.URL()+"/ui/#code="+code); err != nil {
		return err
	}
	var samples sync.WaitGroup
	defer samples.Wait()
	if !c.NoSamples {
		s, err := startSamples(ctx, cl)
		if err != nil {
			return err
		}
		defer s.close()
		posting, enough := context.WithCancel(ctx)
		defer enough()
		samples.Go(func() { s.post(posting) })
	}
	return keepFollowing(ctx, env, cl, attempts, c.JSON)
}

// keepFollowing prints attempts until ctx ends. It reopens a stream that the server has ended. If the API key was deleted
// meanwhile, it cannot; the server continues, and keepFollowing tells the user why it prints no more attempts.
func keepFollowing(ctx context.Context, env *environment, cl *client.Client, attempts *client.AttemptStream, asJSON bool) error {
	for {
		if err := follow(env, attempts, asJSON); !errors.Is(err, io.EOF) {
			return err
		}
		next, err := cl.Attempts(context.WithoutCancel(ctx))
		var refused *client.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
			fmt.Fprintln(env.stderr, "godwit: the API key of this command was deleted: attempts are no longer shown and sample events no longer posted."+
				" The server goes on; stop it with Ctrl-C.")
			<-ctx.Done()
			return nil
		case err != nil:
			return fmt.Errorf("follow attempts: %w", err)
		}
		defer next.Close()
		attempts = next
	}
}

// awaitReady returns once /readyz answers 200. It reports false if ctx ended before.
func awaitReady(ctx context.Context, a *app.App) bool {
	select {
	case <-a.Ready():
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *devCommand) welcome(env *environment, a *app.App, tenant, token, dashboard string) error {
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(struct {
			URL       string `json:"url"`
			Tenant    string `json:"tenant"`
			APIKey    string `json:"api_key"`
			Dashboard string `json:"dashboard"`
		}{a.URL(), tenant, token, dashboard})
	}
	d, err := a.Store().Describe(env.ctx)
	if err != nil {
		return err
	}
	kept := "removed at exit"
	if c.Data != "" || d.Backend != config.SQLite {
		kept = "kept"
	}
	p := newPalette(env.stdout)
	fmt.Fprintf(env.stdout, `%s

  dashboard %s
            (signs in once, within an hour; "godwit dashboard" makes another link)
  url       %s
  API       %s/openapi.json
  dialects  %s/ojs/v1/webhooks, %s/api/v1/webhooks
  tenant    %s
  API key   %s
  store     %s %s, %s (%s)

Post an event of your own:

  curl -d '{"hello":"world"}' -H 'Content-Type: application/json' \
    -H 'Authorization: Bearer %s' '%s/v1/events?type=hello.world'

Have it delivered to you:

  curl -d '{"url":"http://127.0.0.1:3000/","patterns":["hello.*"]}' -H 'Content-Type: application/json' \
    -H 'Authorization: Bearer %s' '%s/v1/endpoints'

Read the metrics:

  curl -H 'Authorization: Bearer %s' '%s/metrics'

`, p.bold("Godwit is running. Stop it with Ctrl-C."), p.bold(dashboard), a.URL(), a.URL(), a.URL(), a.URL(), tenant, token, d.Backend, d.Version, d.Location, kept,
		token, a.URL(), token, a.URL(), token, a.URL())
	if !c.NoSamples {
		fmt.Fprintf(env.stdout, "A sample event is posted every second to a sample endpoint that fails about one time in three.\n\n")
	}
	return nil
}
