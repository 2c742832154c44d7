package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/godwit-hq/godwit/client"
)

// LoginCommand saves a server and a key as a context.
type LoginCommand struct {
	URL         string `arg:"" name:"url" optional:"" help:"URL of the server. Defaults to http://127.0.0.1:8080."`
	Name        string `name:"name" help:"Name of the context. Defaults to the host of the URL." placeholder:"NAME"`
	KeyFile     string `name:"key-file" help:"Read the API key from this file; - for standard input. Defaults to asking for it without showing it." placeholder:"FILE" type:"path"`
	Environment string `name:"environment" help:"Act for this environment, by its id or uid, whenever the context is used, with the key of the server." placeholder:"ENVIRONMENT"`
	Tenant      string `name:"tenant" help:"Act for this tenant, by its id or uid, whenever the context is used, with the key of an environment or of the server." placeholder:"TENANT"`
	JSON        bool   `name:"json" help:"Print one JSON object."`
}

// Help returns the text that --help shows.
func (LoginCommand) Help() string {
	return `Asks for an API key, checks it with the server, and saves both as a context, which is in use from then on: commands that call a server
need no --url, --key, GODWIT_URL or GODWIT_KEY any more. Nothing is saved if the server does not accept the key.

Contexts are in godwit/config.yaml below $XDG_CONFIG_HOME, or else below ~/.config. The file has mode 0600; one that other users can read is
refused. It holds the keys as they are. No command prints them.

Examples:

    godwit login https://hooks.example.com
    godwit login https://staging.example.com --name staging
    godwit keys create --tenant-name ops --scopes all | godwit login --key-file -`
}

// Run logs in.
func (c *LoginCommand) Run(s *Session) error {
	if c.URL == "" {
		c.URL = defaultURL
	}
	c.URL = strings.TrimRight(c.URL, "/")
	if c.Name == "" {
		c.Name = hostOf(c.URL)
	}
	if err := checkContextName(c.Name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	file, err := s.contexts()
	if err != nil {
		return err
	}
	key, err := c.key(s)
	if err != nil {
		return err
	}
	if plainRemote(c.URL) {
		s.say("warning: %s is not https: everyone on the way can read the key", c.URL)
	}
	target := &Target{URL: c.URL, Context: c.Name, Environment: c.Environment, Tenant: c.Tenant, key: key}
	who, err := identify(s.Context, target)
	if err != nil {
		return fmt.Errorf("log in to %s: %w", c.URL, err)
	}
	if file.Contexts == nil {
		file.Contexts = map[string]savedContext{}
	}
	file.Contexts[c.Name] = savedContext{URL: c.URL, Key: key, Environment: c.Environment, Tenant: c.Tenant}
	file.Current = c.Name
	if err := file.save(); err != nil {
		return err
	}
	if c.JSON {
		return who.print(s, true)
	}
	s.say("logged in; context %s is in use now", c.Name)
	return who.print(s, false)
}

func (c *LoginCommand) key(s *Session) (string, error) {
	var key string
	switch {
	case c.KeyFile != "" && c.KeyFile != "-":
		text, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return "", fmt.Errorf("--key-file: %w", err)
		}
		key = strings.TrimSpace(string(text))
	default:
		var err error
		if key, err = s.askSecret("API key: "); err != nil {
			return "", err
		}
	}
	if key == "" {
		return "", errors.New("no API key given")
	}
	return key, nil
}

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	return strings.NewReplacer("[", "", "]", "").Replace(u.Host)
}

// plainRemote reports whether a key would travel unencrypted over a network.
func plainRemote(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}

// identity is what a server says about a key.
type identity struct {
	URL         string   `json:"url"`
	Environment string   `json:"environment,omitempty"` // uid of the environment that the key acts for; empty: it acts for a tenant
	Context     string   `json:"context,omitempty"`
	Tenant      string   `json:"tenant,omitempty"`
	TenantName  string   `json:"tenant_name,omitempty"` // if the key may read it
	Actor       string   `json:"actor"`
	Scopes      []string `json:"scopes"`
}

// identify asks the server who the key is.
func identify(ctx context.Context, t *Target) (*identity, error) {
	cl, err := t.Client()
	if err != nil {
		return nil, err
	}
	registry, err := cl.Commands().Registry(ctx)
	if err != nil {
		return nil, err
	}
	who := &identity{URL: t.URL, Context: t.Context, Tenant: registry.Caller.TenantID, Actor: registry.Caller.ActorID, Scopes: registry.Caller.Scopes}
	if own, isEnvironment, err := who.environment(ctx, cl); err != nil || isEnvironment {
		return own, err
	}
	text, err := cl.Resource("tenants").Of(who.Tenant).Get(ctx)
	var refused *client.Error
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	if err == nil {
		var tenant struct{ Name string }
		if err := json.Unmarshal(text, &tenant); err != nil {
			return nil, fmt.Errorf("read tenant: %w", err)
		}
		who.TenantName = tenant.Name
	}
	return who, nil
}

// environment returns the identity of a key that acts for an environment: the tenant that stands for it has the environment's id.
func (w *identity) environment(ctx context.Context, cl *client.Client) (*identity, bool, error) {
	number, isTenant := strings.CutPrefix(w.Tenant, "ten_")
	if !isTenant {
		return w, false, nil
	}
	text, err := cl.Resource("environments").Of("env_" + number).Get(ctx)
	var refused *client.Error
	if errors.As(err, &refused) {
		return w, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var found struct{ UID, Name string }
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, false, fmt.Errorf("read environment: %w", err)
	}
	w.Environment, w.Tenant, w.TenantName = found.UID, "", ""
	return w, true, nil
}

func (w *identity) print(s *Session, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(s.Stdout).Encode(w)
	}
	if w.Environment != "" {
		_, err := fmt.Fprintf(s.Stdout, "server       %s\nenvironment  %s\nactor        %s\nscopes       %s\n", w.URL, Printable(w.Environment), w.Actor, strings.Join(w.Scopes, ", "))
		return err
	}
	tenant := w.Tenant
	if w.TenantName != "" {
		tenant = fmt.Sprintf("%s (%s)", Printable(w.TenantName), w.Tenant)
	}
	_, err := fmt.Fprintf(s.Stdout, "server  %s\ntenant  %s\nactor   %s\nscopes  %s\n", w.URL, tenant, w.Actor, strings.Join(w.Scopes, ", "))
	return err
}

// WhoamiCommand shows which server, tenant and key commands use.
type WhoamiCommand struct {
	JSON       bool `name:"json" help:"Print one JSON object."`
	Connection `embed:""`
}

// Help returns the text that --help shows.
func (WhoamiCommand) Help() string {
	return `Asks the server who the API key in force is: the tenant that it acts for, its id in records, and its scopes.

Examples:

    godwit whoami
    godwit whoami --context staging --json`
}

// Run asks the server.
func (c *WhoamiCommand) Run(s *Session) error {
	t, err := c.Resolve(s)
	if err != nil {
		return err
	}
	who, err := identify(s.Context, t)
	if err != nil {
		return fmt.Errorf("ask %s: %w", t.URL, err)
	}
	return who.print(s, c.JSON)
}
