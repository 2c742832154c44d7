package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/client"
)

// defaultURL is where a server listens by default.
const defaultURL = "http://127.0.0.1:8080"

// Connection holds the flags of commands that call a running server. A flag takes precedence over the environment, the environment
// over the context.
type Connection struct {
	URL         string `name:"url" env:"GODWIT_URL" help:"URL of the server. Defaults to that of the context, or else to http://127.0.0.1:8080." placeholder:"URL"`
	Key         string `name:"key" env:"GODWIT_KEY" help:"API key. Prefer \"godwit login\" or the environment variable: other users can see a command line." placeholder:"TOKEN"`
	Context     string `name:"context" env:"GODWIT_CONTEXT" complete:"contexts" help:"Context to use, as \"godwit login\" made it. Defaults to the one in use." placeholder:"NAME"`
	Environment string `name:"environment" env:"GODWIT_ENVIRONMENT" complete:"environments" help:"Act for this environment, by its id or uid, with the key of the server or of the environment. Defaults to the environment of the context, or else of the key." placeholder:"ENVIRONMENT"`
	Tenant      string `name:"tenant" env:"GODWIT_TENANT" complete:"tenants" help:"Act for this tenant, by its id or uid, with the key of an environment or of the server. Defaults to the tenant of the context, or else of the key." placeholder:"TENANT"`
}

// A Target is a server, and the key and tenant to use there.
type Target struct {
	URL         string
	Context     string // name of the context that took part; empty: none
	Environment string
	Tenant      string
	key         string
}

// ErrNoKey reports that no API key is known for the server.
var ErrNoKey = errors.New(`no API key: set GODWIT_KEY, run "godwit login", or make a key with "godwit keys create"`)

// Resolve finds the server, key and tenant.
func (c *Connection) Resolve(s *Session) (*Target, error) {
	t := &Target{URL: c.URL, key: c.Key, Environment: c.Environment, Tenant: c.Tenant}
	if t.URL == "" || t.key == "" || c.Context != "" {
		if err := c.fill(s, t); err != nil {
			return nil, err
		}
	}
	if t.URL == "" {
		t.URL = defaultURL
	}
	if t.key == "" {
		return t, ErrNoKey
	}
	return t, nil
}

// fill takes from the context what neither a flag nor the environment has given. The key, the environment and the tenant of a context are used for
// its own server only: a key must not be sent to another one.
func (c *Connection) fill(s *Session, t *Target) error {
	file, err := s.contexts()
	if err != nil {
		return err
	}
	name := c.Context
	if name == "" {
		name = file.Current
	}
	if name == "" {
		return nil
	}
	found, ok := file.Contexts[name]
	if !ok {
		return noContext(name)
	}
	if t.URL == "" {
		t.URL = found.URL
	}
	if !sameServer(t.URL, found.URL) {
		if t.key == "" {
			return fmt.Errorf("no API key for %s: context %s is for %s, and its key is sent nowhere else; set GODWIT_KEY, or run \"godwit login %s\"", t.URL, name, found.URL, t.URL)
		}
		return nil
	}
	t.Context = name
	if t.key == "" {
		t.key = found.Key
		if t.Environment == "" && t.Tenant == "" { // a tenant of another environment is not meant
			t.Environment = found.Environment
		}
		if t.Tenant == "" && (t.Environment == "" || t.Environment == found.Environment) {
			t.Tenant = found.Tenant
		}
	}
	return nil
}

// environment returns the environment to act for; empty: the key's own.
func (c *Connection) environment(s *Session) (string, error) {
	t, err := c.Resolve(s)
	if err != nil {
		return "", err
	}
	return t.Environment, nil
}

func sameServer(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// Client connects to the server.
func (c *Connection) Client(s *Session, options ...client.Option) (*client.Client, error) {
	t, err := c.Resolve(s)
	if err != nil {
		return nil, err
	}
	return t.Client(options...)
}

// Client connects to the target.
func (t *Target) Client(options ...client.Option) (*client.Client, error) {
	if t.Environment != "" {
		options = append(options, client.WithEnvironment(t.Environment))
	}
	if t.Tenant != "" {
		options = append(options, client.WithTenant(t.Tenant))
	}
	return client.New(t.URL, t.key, options...)
}

// At returns the target with another URL, for a cluster whose nodes share keys.
func (t *Target) At(url string) *Target {
	other := *t
	other.URL = url
	return &other
}
