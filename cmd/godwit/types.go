package main

import (
	"fmt"
	"os"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/cli"
)

type typesCommand struct {
	List   cli.TypeList     `cmd:"" help:"List event types, the tenant's own or a standard's."`
	Get    cli.Get          `cmd:"" help:"Show an event type with its schema."`
	Show   typesShowCommand `cmd:"" help:"Show an event type with its schema, as JSON."`
	Put    typesPutCommand  `cmd:"" help:"Create or change an event type of the tenant."`
	Delete cli.Delete       `cmd:"" help:"Remove an event type from the tenant's catalogue."`

	Import typesImportCommand `cmd:"" help:"Create and change event types from an OpenAPI or AsyncAPI document."`
	Export typesExportCommand `cmd:"" help:"Write the catalogue as an OpenAPI or AsyncAPI document."`
}

// Help returns the text that --help shows.
func (typesCommand) Help() string {
	return `The catalogue describes event types and their schemas. The server checks events against it if the tenant's event_validation is
"known" or "strict". The types of the Open Job Spec and of the CYBERCUBE standard are built in. "list --json" prints one JSON array.

Examples:

    godwit types list
    godwit types list --standard cybercube
    godwit types show job.completed
    godwit types put order.paid --description 'An order was paid' --schema order-paid.schema.json
    godwit types import openapi.yaml --dry-run
    godwit types export --format asyncapi > events.json`
}

type typesShowCommand struct {
	Name       string `arg:"" complete:"types" help:"The type, such as order.paid."`
	connection `embed:""`
}

func (c *typesShowCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	t, err := cl.EventType(env.ctx, c.Name)
	if err != nil {
		return fmt.Errorf("show event type: %w", err)
	}
	return printJSON(env.stdout, t)
}

// evolution says how a new version of a schema may differ from the one before.
type evolution struct {
	Compatibility string `name:"compatibility" enum:",none,backward,forward,full" default:"" help:"What later versions of the schema must keep to: backward (events of this version are valid by the next), forward (events of the next are valid by this one), full or none. Defaults to what is declared." placeholder:"NAME"`
	Force         bool   `name:"force" help:"Store a schema that does not keep to the declared compatibility."`
}

type typesPutCommand struct {
	Name        string `arg:"" complete:"types" help:"The type, such as order.paid."`
	Schema      string `name:"schema" help:"File with the JSON Schema (draft 2020-12) of the payload. Defaults to the present schema." placeholder:"FILE"`
	Example     string `name:"example" help:"File with a payload that fits the schema." placeholder:"FILE"`
	Description string `name:"description" help:"What events of this type mean." placeholder:"TEXT"`
	Deprecated  bool   `name:"deprecated" help:"Mark the type as deprecated: producers should use another one."`
	evolution   `embed:""`
	connection  `embed:""`
}

func (c *typesPutCommand) Run(env *environment) error {
	t := client.EventType{Name: c.Name, Description: c.Description, Deprecated: c.Deprecated, Compatibility: c.Compatibility, Force: c.Force}
	for _, f := range []struct {
		file string
		into *[]byte
	}{{c.Schema, (*[]byte)(&t.Schema)}, {c.Example, (*[]byte)(&t.Example)}} {
		if f.file == "" {
			continue
		}
		var err error
		if *f.into, err = os.ReadFile(f.file); err != nil {
			return err
		}
	}
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	stored, err := cl.PutEventType(env.ctx, t)
	if err != nil {
		return fmt.Errorf("put event type: %w", err)
	}
	fmt.Fprintf(env.stdout, "%s version %d\n", stored.Name, stored.Version)
	return nil
}
