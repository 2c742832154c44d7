package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/godwit-hq/godwit/internal/config"
)

type configCommand struct {
	Show      configShowCommand      `cmd:"" default:"withargs" help:"Print every setting with its value and origin."`
	Reference configReferenceCommand `cmd:"" help:"Print the reference page of all settings, in Markdown."`
}

// Help returns the text that --help shows.
func (configCommand) Help() string {
	return `A setting comes from a flag, else the environment, else the file, else its default. Secrets are not printed.

Examples:

    godwit config
    godwit config --config /etc/godwit.yaml
    GODWIT_LISTEN=:9000 godwit config --json
    godwit config reference > configuration.md`
}

type configShowCommand struct {
	JSON            bool `name:"json" help:"Print one JSON object with a member for each setting."`
	config.FileFlag `embed:""`
	config.Config   `embed:""`
}

func (c *configShowCommand) Run(env *environment) error {
	origins, err := env.source.Origins(env.parsed)
	if err != nil {
		return err
	}
	if c.JSON {
		type entry struct {
			Value string        `json:"value"`
			From  config.Origin `json:"from"`
		}
		all := map[string]entry{}
		for _, s := range config.Settings() {
			all[s.Key] = entry{s.Show(&c.Config), origins[s.Flag]}
		}
		return json.NewEncoder(env.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, s := range config.Settings() {
		value := s.Show(&c.Config)
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, value, origins[s.Flag])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return c.Config.Check()
}

type configReferenceCommand struct{}

func (configReferenceCommand) Run(env *environment) error {
	_, err := fmt.Fprint(env.stdout, config.Reference())
	return err
}
