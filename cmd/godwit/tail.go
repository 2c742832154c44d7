package main

import (
	"errors"
	"fmt"
	"io"
)

type tailCommand struct {
	JSON       bool `name:"json" help:"Print one JSON object for each attempt."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (tailCommand) Help() string {
	return `Shows each attempt of the tenant once it is recorded, until stopped. It shows what happens from now on; the past is in
the API (/v1/deliveries). A reader that falls far behind misses attempts: delivery does not wait for it.

Examples:

    GODWIT_KEY=gdw_… godwit tail
    godwit tail --url https://hooks.example.com --json | jq 'select(.outcome != "accepted")'`
}

func (c *tailCommand) Run(env *environment) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	attempts, err := cl.Attempts(env.ctx)
	if err != nil {
		return fmt.Errorf("tail: %w", err)
	}
	defer attempts.Close()
	if err := follow(env, attempts, c.JSON); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
