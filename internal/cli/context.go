package cli

import (
	"encoding/json"
	"fmt"
)

// ContextCommand manages the contexts that login makes.
type ContextCommand struct {
	List   contextListCommand   `cmd:"" help:"List contexts."`
	Use    contextUseCommand    `cmd:"" help:"Use a context from now on."`
	Show   contextShowCommand   `cmd:"" help:"Show the context in use."`
	Delete contextDeleteCommand `cmd:"" help:"Forget a context and its key."`
}

// Help returns the text that --help shows.
func (ContextCommand) Help() string {
	return `A context is a server and an API key under a name; "godwit login" makes it. Commands use the context that --context or GODWIT_CONTEXT
names, or else the one in use. --url, --key, --environment and --tenant, and GODWIT_URL, GODWIT_KEY, GODWIT_ENVIRONMENT and GODWIT_TENANT, take precedence over it. The key of a
context is sent to its own server only.

Examples:

    godwit context list
    godwit context use staging
    godwit endpoints list --context production`
}

// contextView is a context without its key.
type contextView struct {
	Name        string `json:"name"`
	URL         string `json:"url"`
	Environment string `json:"environment,omitempty"`
	Tenant      string `json:"tenant,omitempty"`
	Current     bool   `json:"current"`
}

func (f *contextFile) view(name string) contextView {
	saved := f.Contexts[name]
	return contextView{Name: name, URL: saved.URL, Environment: saved.Environment, Tenant: saved.Tenant, Current: name == f.Current}
}

var contextColumns = []column{
	{title: "", path: "current", kind: mark},
	{title: "NAME", path: "name"},
	{title: "URL", path: "url"},
	{title: "ENVIRONMENT", path: "environment", kind: id},
	{title: "TENANT", path: "tenant", kind: id},
}

type contextListCommand struct {
	JSON bool `name:"json" help:"Print one JSON object per line."`
}

// Run lists contexts.
func (c *contextListCommand) Run(s *Session) error {
	file, err := s.contexts()
	if err != nil {
		return err
	}
	var rows []json.RawMessage
	for _, name := range file.names() {
		row, err := json.Marshal(file.view(name))
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		s.say("there are no contexts; \"godwit login\" makes one")
		return nil
	}
	if c.JSON {
		return s.printLines(rows)
	}
	return s.printTable(contextColumns, rows)
}

type contextUseCommand struct {
	Name string `arg:"" complete:"contexts" help:"Name of the context."`
}

// Run changes the context in use.
func (c *contextUseCommand) Run(s *Session) error {
	file, err := s.contexts()
	if err != nil {
		return err
	}
	if _, ok := file.Contexts[c.Name]; !ok {
		return noContext(c.Name)
	}
	file.Current = c.Name
	if err := file.save(); err != nil {
		return err
	}
	s.say("context %s is in use now (%s)", c.Name, file.Contexts[c.Name].URL)
	return nil
}

func noContext(name string) error {
	return fmt.Errorf("there is no context %q; \"godwit context list\" shows what there is", name)
}

type contextShowCommand struct {
	Name string `arg:"" optional:"" complete:"contexts" help:"Name of the context. Defaults to GODWIT_CONTEXT, or else to the one in use."`
	JSON bool   `name:"json" help:"Print one JSON object."`
}

// Run shows a context.
func (c *contextShowCommand) Run(s *Session) error {
	file, err := s.contexts()
	if err != nil {
		return err
	}
	name := c.Name
	if name == "" {
		name, _ = s.Lookup("GODWIT_CONTEXT")
	}
	if name == "" {
		name = file.Current
	}
	if name == "" {
		return fmt.Errorf("no context is in use; \"godwit login\" makes one, \"godwit context use\" chooses one")
	}
	if _, ok := file.Contexts[name]; !ok {
		return noContext(name)
	}
	text, err := json.Marshal(file.view(name))
	if err != nil {
		return err
	}
	return s.printOne(text, c.JSON, nil)
}

type contextDeleteCommand struct {
	Name string `arg:"" complete:"contexts" help:"Name of the context."`
	Yes  bool   `name:"yes" short:"y" help:"Delete without asking."`
}

// Run forgets a context.
func (c *contextDeleteCommand) Run(s *Session) error {
	file, err := s.contexts()
	if err != nil {
		return err
	}
	saved, ok := file.Contexts[c.Name]
	if !ok {
		return noContext(c.Name)
	}
	if err := s.confirm(c.Yes, fmt.Sprintf("Forget context %s (%s) and its key?", c.Name, saved.URL)); err != nil {
		return err
	}
	delete(file.Contexts, c.Name)
	if file.Current == c.Name {
		file.Current = ""
	}
	if err := file.save(); err != nil {
		return err
	}
	s.say("forgot context %s; the key itself stays valid until it is revoked", c.Name)
	return nil
}
