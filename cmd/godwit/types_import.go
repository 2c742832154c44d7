package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/typedoc"
)

type typesImportCommand struct {
	File       string            `arg:"" help:"The document, JSON or YAML; - reads standard input."`
	DryRun     bool              `name:"dry-run" help:"Show what would change, and change nothing."`
	Rename     map[string]string `name:"rename" help:"Name of a webhook or message in the document, and the type to use instead. Can be repeated." placeholder:"NAME=TYPE"`
	evolution  `embed:""`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (typesImportCommand) Help() string {
	return `Reads event types from the webhooks of an OpenAPI 3.1 document, or from the messages that the application of an AsyncAPI 3 document
sends, and writes those that differ from the catalogue. Types that the document does not name stay. References within the document are
followed; others are refused, so bundle it first.

Nothing is written if the document has a fault. The command can be repeated: what is the same already is not written again.

Examples:

    godwit types import openapi.yaml --dry-run
    godwit types import asyncapi.json --rename orderPlaced=order.placed --compatibility forward`
}

func (c *typesImportCommand) Run(env *environment) error {
	document, err := readDocument(c.File, env.stdin)
	if err != nil {
		return err
	}
	types, err := typedoc.Read(document, c.Rename)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := compileAll(types); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	present, err := cl.EventTypes(env.ctx, "")
	if err != nil {
		return fmt.Errorf("list event types: %w", err)
	}
	known := map[string]*client.EventType{}
	for i := range present {
		known[present[i].Name] = &present[i]
	}
	same, written := 0, 0
	for _, t := range types {
		before := known[t.Name]
		changes := differences(before, &t, c.Compatibility)
		if len(changes) == 0 {
			same++
			continue
		}
		sign := "~"
		if before == nil {
			sign = "+"
		}
		if !c.DryRun {
			next := client.EventType{Name: t.Name, Description: t.Description, Deprecated: t.Deprecated, Schema: t.Schema, Example: t.Example, Force: c.Force}
			if t.Schema != nil {
				next.Compatibility = c.Compatibility
			}
			if _, err := cl.PutEventType(env.ctx, next); err != nil {
				return fmt.Errorf("%s: %w (%d types are written; run the command again when it is mended)", t.Name, err, written)
			}
		}
		written++
		fmt.Fprintf(env.stdout, "%s %s  %s\n", sign, t.Name, strings.Join(changes, ", "))
	}
	verb := "written"
	if c.DryRun {
		verb = "would be written"
	}
	fmt.Fprintf(env.stdout, "%d types %s, %d are the same already\n", written, verb, same)
	return nil
}

func readDocument(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, typedoc.MaxDocument+1))
	}
	return os.ReadFile(file)
}

// compileAll checks the schemas before anything is written.
func compileAll(types []typedoc.Type) error {
	var faults []error
	for _, t := range types {
		if t.Schema == nil {
			continue
		}
		if _, err := catalogue.Compile(t.Schema); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", t.Name, err))
		}
	}
	return errors.Join(faults...)
}

// differences lists what a type of the document has that the catalogue has not.
func differences(before *client.EventType, t *typedoc.Type, compatibility string) []string {
	if before == nil {
		return []string{"new"}
	}
	var changes []string
	for _, c := range []struct {
		name    string
		differs bool
	}{
		{"schema", t.Schema != nil && !sameJSON(before.Schema, t.Schema)},
		{"description", before.Description != t.Description},
		{"example", !sameJSON(before.Example, t.Example)},
		{"deprecated", before.Deprecated != t.Deprecated},
		{"compatibility", t.Schema != nil && compatibility != "" && before.Compatibility != compatibility},
	} {
		if c.differs {
			changes = append(changes, c.name)
		}
	}
	return changes
}

func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

type typesExportCommand struct {
	Format     string `name:"format" enum:"openapi,asyncapi" default:"openapi" help:"openapi (3.1, webhooks) or asyncapi (3.0, messages)." placeholder:"NAME"`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (typesExportCommand) Help() string {
	return `Writes the tenant's own event types and those that its environment shares as a document for generators of types, servers or
documentation. The same document is at GET /v1/catalogue.

Examples:

    godwit types export > openapi.json
    godwit types export --format asyncapi > asyncapi.json`
}

func (c *typesExportCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	document, err := cl.Catalogue(env.ctx, c.Format)
	if err != nil {
		return fmt.Errorf("get the catalogue: %w", err)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		return fmt.Errorf("get the catalogue: %w", err)
	}
	_, err = fmt.Fprintln(env.stdout, strings.TrimSpace(text.String()))
	return err
}
