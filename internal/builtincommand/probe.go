package builtincommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// ProbeEvent is the type of the events that probe commands publish, for a conformance suite to count.
const ProbeEvent = "ids.probe"

const probeMembers = `"run":{"type":"string","maxLength":64},"n":{"type":"integer","minimum":0,"default":0},` +
	`"hold_ms":{"type":"integer","minimum":0,"maximum":15000,"default":0},"end":{"enum":["execute","reject","fail"],"default":"execute"},` +
	`"tags":{"type":"array","items":{"type":"string","maxLength":64},"maxItems":16,"x-set":true},` +
	`"trace":{"type":"string","maxLength":64,"x-ephemeral":true}`

// touch publishes an event that a suite can count. Depending on its args it first waits, or is rejected, or fails.
func touch(cfg Config) func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
	type probe struct {
		Run  string `json:"run"`
		N    int    `json:"n"`
		Hold int    `json:"hold_ms"`
		End  string `json:"end"`
	}
	return func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[probe](c)
		if err != nil {
			return nil, err
		}
		if in.Hold > 0 {
			timer := time.NewTimer(time.Duration(in.Hold) * time.Millisecond)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		switch in.End {
		case "reject":
			return nil, command.Reject("probe_rejected", "the probe was told to be rejected")
		case "fail":
			return nil, &command.Failure{Reason: "probe_failed", Detail: "the probe was told to fail", Err: errors.New("told so")}
		}
		var random [8]byte
		godwit.Random(random[:])
		body, err := json.Marshal(map[string]any{"run": in.Run, "n": in.N, "command_id": c.CommandID})
		if err != nil {
			return nil, err
		}
		o := &command.Outcome{
			Summary: fmt.Sprintf("Probe %d of run %q left its mark.", in.N, in.Run),
			Result:  map[string]any{"run": in.Run, "n": in.N, "value": fmt.Sprintf("%x", random)},
		}
		_, err = emit(ctx, cfg, c, o, engine.Publication{
			Type: ProbeEvent, ContentType: "application/json", Body: body, Attributes: map[string]string{"run": in.Run}, Key: c.ProviderKey("event"),
		})
		return o, err
	}
}

func probeTouch(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "probe", Action: "touch", Scopes: []string{"ingest"}, Args: schema(probeMembers, "run"),
		Description: "Leaves an event of type " + ProbeEvent + ": an effect that a conformance suite can count.",
	}, touch(cfg)}
}

func probeDelete(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "probe", Action: "delete", Scopes: []string{"ingest"}, Confirmation: true, Args: schema(probeMembers, "run"),
		Description: "As probe.touch, after a confirmation.",
	}, touch(cfg)}
}

func probeEcho() operation {
	return operation{command.Declaration{
		Entity: "probe", Action: "echo", Class: command.I0, Scopes: []string{"read"}, Args: schema(`"text":{"type":"string","maxLength":256}`),
		Description: "Reads only: says what it was told, with a value that differs each time.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		var random [8]byte
		godwit.Random(random[:])
		return &command.Outcome{Summary: "Echo.", Result: map[string]any{"args": json.RawMessage(c.Args), "value": fmt.Sprintf("%x", random)}}, nil
	}}
}
