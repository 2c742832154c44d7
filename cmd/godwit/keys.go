package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/cli"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

type keysCommand struct {
	Create    keysCreateCommand    `cmd:"" help:"Create an API key; on the store, also its tenant if necessary."`
	List      keysListCommand      `cmd:"" help:"List API keys, without their tokens."`
	Get       cli.Get              `cmd:"" help:"Show an API key of a server, without its token."`
	Revoke    keysRevokeCommand    `cmd:"" help:"Revoke an API key."`
	Ring      keysRingCommand      `cmd:"" help:"Make a key for the key ring."`
	Reencrypt keysReencryptCommand `cmd:"" help:"Encrypt all secrets in the store again with the first key of the key ring."`

	AdoptEvidence keysAdoptEvidenceCommand `cmd:"" name:"adopt-evidence" help:"Change the key that signs the evidence of a store."`
}

// Help returns the text that --help shows.
func (keysCommand) Help() string {
	return `API keys let producers and operators in; the key ring encrypts signing keys and credentials in the store.

create, list and revoke work on a server, over its API, if an API key for one is known: from "godwit login", GODWIT_KEY or --key. They work on
the store itself, as a server with the same settings would open it, if no key is known, with --local, with --tenant-name or --environment, or if
the store is named: by --data, --store, --keyring-file, --config or their environment variables. The first key is created this way. Every user who can
read the store's files or database can do that, also while a server runs.

Examples:

    godwit keys create --tenant-name ops --scopes all | godwit login --key-file -
    godwit keys create --scopes ingest --name "shop backend"
    godwit keys list
    godwit keys list --local
    godwit keys revoke key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`
}

// onStore holds the flags of commands that work on the store directly.
type onStore struct {
	config.FileFlag `embed:""`
	config.Storage  `embed:""`
}

// maybeOnStore holds the flags of commands that work on a server or on the store.
type maybeOnStore struct {
	Local   bool `name:"local" help:"Work on the store itself, also if an API key for a server is known."`
	onStore `embed:""`
}

// chosen reports whether to work on the store: the user said so, named the store or an owner that only the store knows, or has no API
// key for a server.
func (o *maybeOnStore) chosen(env *environment, server *cli.Connection, named bool) (bool, error) {
	if o.Local || named || o.Config != "" {
		return true, nil
	}
	origins, err := env.source.Origins(env.parsed)
	if err != nil {
		return false, err
	}
	for _, flag := range []string{"data", "store", "store-connections", "keyring", "keyring-file"} {
		if origins[flag] != "default" {
			return true, nil
		}
	}
	_, err = server.Resolve(env.session())
	if errors.Is(err, cli.ErrNoKey) {
		return true, nil
	}
	return false, err
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
	TenantName string          `name:"tenant-name" help:"Name of the tenant; it is created if it does not exist. In place of --tenant, on the store only." placeholder:"NAME"`
	Name       string          `name:"name" help:"What the key is for." default:"made by godwit keys" placeholder:"TEXT"`
	Scopes     []string        `name:"scopes" help:"Scopes of the key: ingest, read, manage, admin, audit, metrics, or all." placeholder:"SCOPE" required:""`
	Expires    config.Duration `name:"expires" help:"How long the key is valid, such as 90d. Defaults to no end." placeholder:"DURATION"`
	Replaces   string          `name:"replaces" help:"Key that the new one replaces. Requests repeated with the new key still count as repeats." placeholder:"KEY_ID"`
	JSON       bool            `name:"json" help:"Print one JSON object."`

	cli.Connection `embed:""`
	maybeOnStore   `embed:""`
}

// Help returns the text that --help shows.
func (keysCreateCommand) Help() string {
	return `The token is printed once. The store keeps only its hash. "godwit keys --help" tells when the command works on a server and when on the
store. On a server, a key can grant no scope that it lacks. A key of an environment acts for any tenant of it; its requests name the tenant
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
	local, err := c.chosen(env, &c.Connection, c.TenantName != "")
	if err != nil {
		return err
	}
	if !local {
		return cli.CreateKey(env.session(), &c.Connection, c.request(scopes), c.JSON)
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
	owner, err := findKeyOwner(env.ctx, m, c.Environment, c.Tenant, c.TenantName)
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

// request is the body of the request that creates the key on a server.
func (c *keysCreateCommand) request(scopes []godwit.Scope) map[string]any {
	body := map[string]any{"name": c.Name, "scopes": scopes}
	if c.Expires > 0 {
		body["expires_at"] = time.Now().Add(c.Expires.Real()).UTC()
	}
	if c.Replaces != "" {
		body["replaces"] = c.Replaces
	}
	return body
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
	cli.KeyList  `embed:""`
	maybeOnStore `embed:""`
}

// Help returns the text that --help shows.
func (keysListCommand) Help() string {
	return `On a server, lists the keys of one tenant: that of the key in force, or of --tenant. On the store, lists those of all tenants, unless --tenant
names one. "godwit keys --help" tells when it is which.

Examples:

    godwit keys list
    godwit keys list --local --json`
}

func (c *keysListCommand) Run(env *environment) error {
	local, err := c.chosen(env, &c.Connection, false)
	if err != nil {
		return err
	}
	if !local {
		return c.KeyList.Run(env.session())
	}
	m, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	var owners []godwit.Tenant
	if c.Tenant != "" || c.Environment != "" {
		t, err := findKeyOwner(env.ctx, m, c.Environment, c.Tenant, "")
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
	cli.Delete   `embed:""`
	maybeOnStore `embed:""`
}

// Help returns the text that --help shows.
func (keysRevokeCommand) Help() string {
	return `On a server, it asks at a terminal, and needs --yes elsewhere. On the store, it needs --tenant and does not ask. Servers may accept a revoked key
for a few more seconds. "godwit keys --help" tells when it is which.

Examples:

    godwit keys revoke key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit keys revoke key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --tenant ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e00 --local`
}

func (c *keysRevokeCommand) Run(env *environment) error {
	local, err := c.chosen(env, &c.Connection, false)
	if err != nil {
		return err
	}
	if !local {
		return c.Delete.Run(env.session())
	}
	id, err := godwit.ParseKeyID(c.ID)
	if err != nil {
		return err
	}
	m, st, err := c.open(env)
	if err != nil {
		return err
	}
	defer st.Close()
	owner, err := findKeyOwner(env.ctx, m, c.Environment, c.Tenant, "")
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
