package cli

import (
	"encoding/json"
	"fmt"
)

// settingsCommand shows the configuration of a running server.
type settingsCommand struct {
	Changed    bool `name:"changed" help:"Only settings that differ from their default."`
	JSON       bool `name:"json" help:"Print the JSON object that the API shows."`
	Connection `embed:""`
}

// Help returns the text that --help shows.
func (settingsCommand) Help() string {
	return `The node that answers shows every setting with its value and where the value came from, its version and its bounds. Secrets are never shown. It needs a key with the scope
admin. "godwit config" shows what a server on this machine would start with.

Examples:

    godwit settings
    godwit settings --changed
    godwit settings --json | jq .limits`
}

var settingColumns = []column{
	{title: "SETTING", path: "key"},
	{title: "VALUE", path: "value"},
	{title: "DEFAULT", path: "default", spare: true},
	{title: "ORIGIN", path: "origin"},
}

// Run shows the settings.
func (c *settingsCommand) Run(s *Session) error {
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	text, err := cl.Resource("settings").Get(s.Context)
	if err != nil {
		return fmt.Errorf("get settings: %w", err)
	}
	if c.JSON {
		return s.printJSON(text)
	}
	var all struct {
		Version   string
		Node      string
		StartedAt string `json:"started_at"`
		Store     struct{ Backend, Version string }
		Options   []json.RawMessage
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	s.say("godwit %s, node %s, started %s, on %s %s", all.Version, Printable(all.Node), all.StartedAt, all.Store.Backend, all.Store.Version)
	var shown []json.RawMessage
	for _, option := range all.Options {
		var o struct{ Value, Default string }
		if err := json.Unmarshal(option, &o); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if !c.Changed || o.Value != o.Default {
			shown = append(shown, option)
		}
	}
	return s.printTable(settingColumns, shown)
}
