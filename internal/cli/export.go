package cli

import "github.com/godwit-hq/godwit/internal/apply"

// ExportCommand writes files for apply from a server.
type ExportCommand struct {
	Out        string `name:"out" short:"o" help:"Directory to write to. Defaults to one stream of YAML documents on standard output." placeholder:"DIR"`
	Connection `embed:""`
}

// Help returns the text that --help shows.
func (ExportCommand) Help() string {
	return `Writes environments, event types, tenants, endpoints and sources as "godwit apply" reads them. Applied to the same server, the files change
nothing; applied to an empty one, they make it the same. Members that have their usual value are left out.

Secrets are never written: headers and credentials of endpoints, and credentials of sources, become references to environment
variables, which apply needs to create the objects. The API does not show the other settings of a credential either, such as the scopes of
oauth2; write these in by hand. An endpoint that is created gets a new signing secret. Tenants and endpoints without a uid cannot be described in files; the
command says how many it left out.

Examples:

    godwit export -o platform/
    godwit export --environment staging > staging.yaml`
}

// Run writes the files.
func (c *ExportCommand) Run(s *Session) error {
	cl, err := declarative(s, &c.Connection, apply.DefaultConcurrency)
	if err != nil {
		return err
	}
	environment, err := c.environment(s)
	if err != nil {
		return err
	}
	x := &apply.Exporter{Server: apply.NewServer(cl), Environment: environment, Note: s.say}
	if c.Out != "" {
		n, err := x.Directory(s.Context, c.Out)
		if err == nil {
			s.say("wrote %d files below %s", n, c.Out)
		}
		return err
	}
	text, err := x.Stream(s.Context)
	if err != nil {
		return err
	}
	_, err = s.Stdout.Write(text)
	return err
}
