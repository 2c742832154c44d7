package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

type keysCommand struct {
	Create    keysCreateCommand    `cmd:"" help:"Create an API key, and its tenant if necessary."`
	List      keysListCommand      `cmd:"" help:"List API keys, without their tokens."`
	Revoke    keysRevokeCommand    `cmd:"" help:"Revoke an API key."`
	Ring      keysRingCommand      `cmd:"" help:"Make a key for the key ring."`
	Reencrypt keysReencryptCommand `cmd:"" help:"Encrypt all secrets in the store again with the first key of the key ring."`

	AdoptEvidence keysAdoptEvidenceCommand `cmd:"" name:"adopt-evidence" help:"Change the key that signs the evidence of a store."`
}

// Help returns the text that --help shows.
func (keysCommand) Help() string {
	return `API keys let producers and operators in; the key ring encrypts signing keys and credentials in the store. These
commands work on the store itself, so every user who can read its files or database can use them. The first key is created this
way. They may run while a server runs.`
}

// onStore holds the flags of commands that work on the store directly.
type onStore struct {
	config.FileFlag `embed:""`
	config.Storage  `embed:""`
}

// open opens the key ring and the store as a server with the same settings would.
func (o *onStore) open(env *environment) (*management.Service, store.Store, error) {
	if _, err := env.source.Origins(env.parsed); err != nil {
		return nil, nil, err
	}
	if err := o.Storage.Check(); err != nil {
		return nil, nil, err
	}
	log := app.NewLogger(config.Log{Format: "text"}, env.stderr)
	return app.OpenManagement(env.ctx, &o.Storage, log)
}

type keysCreateCommand struct {
	keyOwner   `embed:""`
	TenantName string          `name:"tenant-name" help:"Name of the tenant; it is created if it does not exist. In place of --tenant." placeholder:"NAME"`
	Name       string          `name:"name" help:"What the key is for." default:"made by godwit keys" placeholder:"TEXT"`
	Scopes     []string        `name:"scopes" help:"Scopes of the key: ingest, read, manage, admin, audit, metrics, or all." placeholder:"SCOPE" required:""`
	Expires    config.Duration `name:"expires" help:"How long the key is valid, such as 90d. Defaults to no end." placeholder:"DURATION"`
	Replaces   string          `name:"replaces" help:"Key that the new one replaces. Requests repeated with the new key still count as repeats." placeholder:"KEY_ID"`
	JSON       bool            `name:"json" help:"Print one JSON object."`
	onStore    `embed:""`
}

// Help returns the text that --help shows.
func (keysCreateCommand) Help() string {
	return `The token is printed once. The store keeps only its hash. A key of an environment acts for any tenant of it; its requests name the tenant
in the header field Godwit-Tenant.

Examples:

    godwit keys create --tenant-name acme --scopes ingest --name "shop backend"
    godwit keys create --tenant-name ops --scopes all --expires 90d
    godwit keys create --tenant-name ops --scopes metrics --name prometheus
    godwit keys create --environment staging --scopes ingest,read,manage --name "our platform"
    export GODWIT_KEY=$(godwit keys create --tenant-name acme --scopes all --json | jq -r .api_key)`
}

func (c *keysCreateCommand) Run(env *environment) error {
	scopes, err := parseScopes(c.Scopes)
	if err != nil {
		return err
	}
	if c.Tenant != "" && c.TenantName != "" {
		return errors.New("--tenant and --tenant-name exclude each other")
	}
	spec := management.KeySpec{Name: c.Name, Scopes: scopes}
	if c.Expires > 0 {
		spec.ExpiresAt = time.Now().Add(c.Expires.Real())
	}
	if c.Replaces != "" {
		if spec.Replaces, err = godwit.ParseKeyID(c.Replaces); err != nil {
			return fmt.Errorf("--replaces: %w", err)
		}
	}
	m, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	owner, err := c.find(env.ctx, m, c.TenantName)
	if err != nil {
		return err
	}
	key, token, err := m.Keys.Create(env.ctx, nil, owner.ID, spec)
	if err != nil {
		return err
	}
	if c.JSON {
		shown := ownerFields(owner)
		shown["key"], shown["api_key"] = key.ID.String(), token
		return json.NewEncoder(env.stdout).Encode(shown)
	}
	fmt.Fprintf(env.stderr, "%s\nkey     %s (%s)\nThe API key, shown this once:\n", ownerText(owner), key.ID, strings.Join(c.Scopes, ", "))
	fmt.Fprintln(env.stdout, token)
	return nil
}

func parseScopes(names []string) ([]godwit.Scope, error) {
	if slices.Equal(names, []string{"all"}) {
		return godwit.AllScopes, nil
	}
	var scopes []godwit.Scope
	for _, n := range names {
		if !slices.Contains(godwit.AllScopes, godwit.Scope(n)) {
			return nil, fmt.Errorf("--scopes: there is no scope %q; choose among %v or all", n, godwit.AllScopes)
		}
		scopes = append(scopes, godwit.Scope(n))
	}
	return scopes, nil
}

type keysListCommand struct {
	keyOwner `embed:""`
	JSON     bool `name:"json" help:"Print one JSON object per line."`
	onStore  `embed:""`
}

func (c *keysListCommand) Run(env *environment) error {
	m, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	var owners []godwit.Tenant
	if c.Tenant != "" || c.Environment != "" {
		t, err := c.find(env.ctx, m, "")
		if err != nil {
			return err
		}
		owners = append(owners, *t)
	} else if owners, err = allKeyOwners(env.ctx, m); err != nil {
		return err
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "KEY\tOWNER\tNAME\tBEGINS\tSCOPES\tSTATE")
	}
	for _, t := range owners {
		page := store.Page{Limit: 200}
		for {
			keys, err := m.Keys.List(env.ctx, t.ID, page)
			if err != nil {
				return err
			}
			for _, k := range keys {
				if err := printKey(env, w, &t, &k, c.JSON); err != nil {
					return err
				}
			}
			if len(keys) < page.Limit {
				break
			}
			page.After = keys[len(keys)-1].ID
		}
	}
	return w.Flush()
}

func printKey(env *environment, w *tabwriter.Writer, t *godwit.Tenant, k *godwit.APIKey, asJSON bool) error {
	state := "live"
	switch {
	case !k.RevokedAt.IsZero():
		state = "revoked " + k.RevokedAt.Format(time.DateTime)
	case !k.LiveAt(time.Now()):
		state = "expired " + k.ExpiresAt.Format(time.DateTime)
	case !k.ExpiresAt.IsZero():
		state = "until " + k.ExpiresAt.Format(time.DateTime)
	}
	var scopes []string
	for _, s := range k.Scopes {
		scopes = append(scopes, string(s))
	}
	if asJSON {
		shown := ownerFields(t)
		maps.Copy(shown, map[string]any{"key": k.ID.String(), "name": k.Name, "hint": k.Hint, "scopes": scopes, "state": state})
		return json.NewEncoder(env.stdout).Encode(shown)
	}
	owner := t.Name
	if t.Home {
		owner += " (environment)"
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s…\t%s\t%s\n", k.ID, owner, k.Name, k.Hint, strings.Join(scopes, ","), state)
	return err
}

type keysRevokeCommand struct {
	Key      string `arg:"" help:"Id of the key, as \"godwit keys list\" shows it." placeholder:"KEY_ID"`
	keyOwner `embed:""`
	onStore  `embed:""`
}

// Help returns the text that --help shows.
func (keysRevokeCommand) Help() string {
	return `A running server may accept a revoked key for a few more seconds.

Example:

    godwit keys revoke key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --tenant ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e00`
}

func (c *keysRevokeCommand) Run(env *environment) error {
	id, err := godwit.ParseKeyID(c.Key)
	if err != nil {
		return err
	}
	m, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	owner, err := c.find(env.ctx, m, "")
	if err != nil {
		return err
	}
	if err := m.Keys.Revoke(env.ctx, nil, owner.ID, id); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%q has no key %s", owner.Name, id)
		}
		return err
	}
	fmt.Fprintln(env.stderr, "revoked", id)
	return nil
}

type keysRingCommand struct{}

// Help returns the text that --help shows.
func (keysRingCommand) Help() string {
	return `Prints a line for a key ring. The first line encrypts, all lines decrypt. To change the key: put a new line in
front, restart the servers, run "godwit keys reencrypt", then remove the old lines.

Examples:

    godwit keys ring > keyring && chmod 600 keyring
    (godwit keys ring; cat keyring) > keyring.new && mv keyring.new keyring`
}

func (keysRingCommand) Run(env *environment) error {
	_, err := fmt.Fprintln(env.stdout, app.GenerateRing())
	return err
}

type keysReencryptCommand struct {
	onStore `embed:""`
}

// Help returns the text that --help shows.
func (keysReencryptCommand) Help() string {
	return `Run it after a new key was put in front of the key ring and the servers were restarted with it. It may run beside them
and may be run again. When it ends well, the other keys can be removed from the ring; wait for the idempotency window (24h)
first if repeated requests are to get the answers that were kept for them, which are not sealed anew.

Records of commands are sealed anew with their outcomes, whatever their window. Those under way are left to the server that
executes them: the command then says how many, and ends with 1; run it again when they have ended. So it does when a record
is not as it was written, and names it.`
}

func (c *keysReencryptCommand) Run(env *environment) error {
	_, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	ring, err := app.OpenRing(&c.Storage, app.NewLogger(config.Log{Format: "text"}, env.stderr))
	if err != nil {
		return err
	}
	done, err := management.Reencrypt(env.ctx, st, ring, func(r management.Reencryption) {
		fmt.Fprintf(env.stderr, "%d looked at, %d sealed anew\n", r.Seen, r.Resealed)
	})
	if err != nil {
		return err
	}
	commands, err := command.Reseal(env.ctx, st, ring, time.Now)
	if err != nil {
		return err
	}
	for _, id := range commands.Broken {
		fmt.Fprintf(env.stderr, "the record of command %s opens with no key of the ring, or is not as it was written\n", id)
	}
	if len(commands.Broken) == 0 && commands.UnderWay == 0 {
		if err := app.ResealRingCheck(env.ctx, st, ring); err != nil {
			return err
		}
	}
	switch {
	case len(commands.Broken) > 0:
		return fmt.Errorf("%d records of commands could not be sealed anew: keep the other keys", len(commands.Broken))
	case commands.UnderWay > 0:
		return fmt.Errorf("%d commands are under way or await confirmation, and still sealed with another key: keep it, and run this again when they have ended", commands.UnderWay)
	}
	fmt.Fprintf(env.stdout, "all %d values are sealed with key %s; %d were changed now\n", done.Seen+commands.Seen, ring.Active(), done.Resealed+commands.Resealed)
	return nil
}

type keysAdoptEvidenceCommand struct {
	Key     string `arg:"" help:"File with the new private key (Ed25519, PEM)." placeholder:"FILE"`
	onStore `embed:""`
}

// Help returns the text that --help shows.
func (keysAdoptEvidenceCommand) Help() string {
	return `A store remembers which key its evidence is signed with, and a server with another key refuses to start. Run this when that key
is lost or has to be replaced, with all servers stopped; then start them with --commands-evidence-key FILE. Exports verify with
the new key alone (godwit evidence verify --key); keep an export that was made with the old one.

Example:

    openssl genpkey -algorithm ed25519 -out evidence.key
    godwit keys adopt-evidence evidence.key --store postgres://godwit@db/godwit --keyring-file /etc/godwit/keyring`
}

func (c *keysAdoptEvidenceCommand) Run(env *environment) error {
	_, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	cfg := config.Config{Storage: c.Storage}
	cfg.Commands.EvidenceKey = c.Key
	key, err := app.EvidenceKey(&cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := app.AdoptEvidenceKey(env.ctx, st, key); err != nil {
		return err
	}
	fmt.Fprintln(env.stderr, "evidence of this store is signed with the key in", c.Key, "from now on")
	return nil
}
