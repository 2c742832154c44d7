package main

import (
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/client"
)

// progressInterval is how often a broadcast is asked for its progress.
const progressInterval = 500 * time.Millisecond

// broadcast sends the event to several tenants and shows the progress.
func (c *sendCommand) broadcast(env *environment, cl *client.Client, event client.Event) error {
	b, err := cl.Broadcast(env.ctx, event, c.Tenants...)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	for shown := -1; !b.Ended() && !c.NoWait; {
		if done := b.Accepted + b.Skipped; done != shown {
			shown = done
			fmt.Fprintf(env.stderr, "%d of %d tenants\n", done, b.Tenants)
		}
		select {
		case <-env.ctx.Done():
			fmt.Fprintf(env.stderr, "the server goes on with it: godwit broadcasts get %s\n", b.ID)
			return env.ctx.Err()
		case <-time.After(progressInterval):
		}
		if b, err = cl.GetBroadcast(env.ctx, b.ID); err != nil {
			return fmt.Errorf("get progress: %w", err)
		}
	}
	if c.JSON {
		return printJSON(env.stdout, b)
	}
	fmt.Fprintln(env.stdout, b.ID)
	switch {
	case b.Tenants == 0:
		fmt.Fprintln(env.stderr, "stored, but no tenant has an endpoint for events of this type")
	case b.Skipped > 0:
		fmt.Fprintf(env.stderr, "%d of %d tenants have the event; see who was skipped and why: godwit broadcasts tenants %s --skipped\n", b.Accepted, b.Tenants, b.ID)
	}
	return nil
}
