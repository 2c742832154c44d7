package main

import (
	"encoding/json"
	"fmt"

	"github.com/godwit-hq/godwit/internal/telemetry"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

func (c *versionCommand) Run(env *environment) error {
	b := telemetry.Build()
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(b)
	}
	fmt.Fprintf(env.stdout, "godwit %s", b.Version)
	if b.Revision != "" {
		fmt.Fprintf(env.stdout, " (%.12s", b.Revision)
		if b.Modified {
			fmt.Fprint(env.stdout, ", modified")
		}
		fmt.Fprint(env.stdout, ")")
	}
	fmt.Fprintf(env.stdout, " %s\n", b.Go)
	return nil
}
