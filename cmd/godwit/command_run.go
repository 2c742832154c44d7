package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/cli"
)

type commandRunCommand struct {
	Name       string            `arg:"" help:"Command: entity and action, such as endpoint.delete." placeholder:"ENTITY.ACTION"`
	Target     string            `name:"target" help:"Id of the object that the command acts on." placeholder:"ID"`
	Arg        map[string]string `name:"arg" short:"a" mapsep:"none" help:"Argument; may be given more than once. The schema of the command decides whether it is text, a number or JSON." placeholder:"NAME=VALUE"`
	Args       string            `name:"args" help:"All arguments as one JSON object." placeholder:"JSON"`
	Options    string            `name:"options" help:"Options as a JSON object. The key of the command does not depend on them." placeholder:"JSON"`
	Yes        bool              `name:"yes" short:"y" help:"Confirm without asking."`
	JSON       bool              `name:"json" help:"Print the server's last answer as JSON."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (commandRunCommand) Help() string {
	return `A destructive command shows what it would do and asks for confirmation; without a terminal it needs --yes. A command that
also needs a second API key asks for the token that "godwit command approve" prints for that key.

A repeated command is not executed again: it shows the outcome of the first. To execute it again on purpose, give the
argument request another value. Exit codes: 0 executed, now or before; 1 rejected, failed or refused; 3 in progress, or awaiting confirmation.

Examples:

    godwit command run endpoint.delete --target sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit command run endpoint.rotate_secret --target WEB-X2M8KD-Z --arg overlap_seconds=3600 --json | jq -r .outcome.result.secret
    godwit command run dead_letters.purge --arg until=2026-01-01T00:00:00Z --arg request=2026-01 --yes
    godwit command run dead_letters.purge --arg all=true
    godwit command run event.publish --args '{"type":"order.paid","data":{"order":42}}'
    godwit command run tenant.delete --target ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`
}

func (c *commandRunCommand) Run(env *environment) error {
	entity, action, ok := strings.Cut(c.Name, ".")
	if !ok {
		return fmt.Errorf("%q is not an entity and an action, such as endpoint.delete", c.Name)
	}
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	commands := cl.Commands()
	registry, err := commands.Registry(env.ctx)
	if err != nil {
		return fmt.Errorf("run command: %w", err)
	}
	d, err := declared(registry, c.Name)
	if err != nil {
		return err
	}
	args, err := c.arguments(d)
	if err != nil {
		return err
	}
	options, err := object("--options", c.Options)
	if err != nil {
		return err
	}
	// This is checked before the command is submitted: its token would be lost, and the key taken until it expires.
	if d.RequiresConfirmation && !c.Yes && !env.session().Interactive {
		return fmt.Errorf("%s has to be confirmed, and there is no terminal to ask at: add --yes to confirm it", c.Name)
	}
	a, err := commands.Submit(env.ctx, client.Command{Entity: entity, Action: action, Target: c.Target, Args: args, Options: options, Channel: "cli"})
	if err != nil {
		return fmt.Errorf("run command: %w", err)
	}
	if a.Awaits() {
		if a, err = c.confirm(env, commands, d, a); err != nil {
			return err
		}
	}
	return printAnswer(env, a, c.JSON)
}

// arguments merges --args and --arg.
func (c *commandRunCommand) arguments(d *client.CommandDeclaration) (json.RawMessage, error) {
	whole, err := object("--args", c.Args)
	if err != nil {
		return nil, err
	}
	if len(c.Arg) == 0 {
		return whole, nil
	}
	args := map[string]json.RawMessage{}
	if whole != nil {
		if err := json.Unmarshal(whole, &args); err != nil {
			return nil, fmt.Errorf("--args: %w", err)
		}
	}
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if len(d.ArgsSchema) > 0 {
		if err := json.Unmarshal(d.ArgsSchema, &schema); err != nil {
			return nil, fmt.Errorf("read schema of %s: %w", d.Name(), err)
		}
	}
	for name, text := range c.Arg {
		// A value stays text if the schema wants text or does not describe the member.
		p, known := schema.Properties[name]
		if known && p.Type != nil && p.Type != "string" && json.Valid([]byte(text)) {
			args[name] = json.RawMessage(text)
			continue
		}
		if args[name], err = json.Marshal(text); err != nil {
			return nil, err
		}
	}
	return json.Marshal(args)
}

func object(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		return nil, fmt.Errorf("%s: is not a JSON object", flag)
	}
	return json.RawMessage(text), nil
}

// confirm shows what would happen, asks the user, and sends the token.
func (c *commandRunCommand) confirm(env *environment, commands *client.Commands, d *client.CommandDeclaration, a *client.CommandAnswer) (*client.CommandAnswer, error) {
	if a.ConfirmationToken == "" {
		return a, nil // another submission got the token
	}
	describe(env, d, a)
	if !c.Yes {
		answer, err := env.session().Ask("Execute it? Type yes: ")
		if err != nil {
			return nil, err
		}
		if !strings.EqualFold(answer, "yes") && !strings.EqualFold(answer, "y") {
			return nil, errors.New("not confirmed; nothing was done")
		}
	}
	stepUp := ""
	if a.StepUpURL != "" {
		fmt.Fprintf(env.stderr, "A second API key has to approve it: GODWIT_KEY=… godwit command approve %s\n", a.CommandID)
		if !env.session().Interactive {
			fmt.Fprintf(env.stderr, "then: godwit command confirm %s --token %s --step-up …\n", a.CommandID, a.ConfirmationToken)
			return a, nil
		}
		var err error
		if stepUp, err = env.session().Ask("The token that it printed: "); err != nil {
			return nil, err
		}
	}
	return confirmCommand(env.ctx, commands, a.CommandID, a.ConfirmationToken, stepUp)
}

// describe prints what a confirmation would execute.
func describe(env *environment, d *client.CommandDeclaration, a *client.CommandAnswer) {
	fmt.Fprintf(env.stderr, "\n  command  %s\n", cli.Printable(a.Intent.Entity+"."+a.Intent.Action))
	if a.Intent.Target != "" {
		fmt.Fprintf(env.stderr, "  target   %s\n", cli.Printable(a.Intent.Target))
	}
	if d != nil {
		fmt.Fprintf(env.stderr, "  effect   %s\n", cli.Printable(d.Description))
	}
	if a.Affects != nil {
		fmt.Fprintf(env.stderr, "  affects  %s\n", cli.Affected(a.Affects))
	}
	fmt.Fprintf(env.stderr, "  id       %s\n  until    %s\n\n", a.CommandID, clockTime(a.ExpiresAt))
}

func confirmCommand(ctx context.Context, commands *client.Commands, id, token, stepUp string) (*client.CommandAnswer, error) {
	a, err := commands.Confirm(ctx, id, token, stepUp)
	if err != nil {
		return nil, fmt.Errorf("confirm command: %w", err)
	}
	return a, nil
}

type commandConfirmCommand struct {
	ID         string `arg:"" help:"Id of the command." placeholder:"CMD_ID"`
	Token      string `name:"token" help:"Confirmation token of the command." placeholder:"TOKEN" required:""`
	StepUp     string `name:"step-up" help:"Token of the approval by a second API key." placeholder:"TOKEN"`
	JSON       bool   `name:"json" help:"Print the server's answer as JSON."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (commandConfirmCommand) Help() string {
	return `The token is the confirmation, so the command does not ask. The token is valid once, for its command only, for some minutes. A
command that was confirmed before shows its outcome again.

Examples:

    godwit command confirm cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --token cft_…
    godwit command confirm cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f --token cft_… --step-up cft_…`
}

func (c *commandConfirmCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	a, err := confirmCommand(env.ctx, cl.Commands(), c.ID, c.Token, c.StepUp)
	if err != nil {
		return err
	}
	return printAnswer(env, a, c.JSON)
}

type commandApproveCommand struct {
	ID         string `arg:"" help:"Id of the command." placeholder:"CMD_ID"`
	Yes        bool   `name:"yes" short:"y" help:"Approve without asking."`
	JSON       bool   `name:"json" help:"Print the server's answer as JSON."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (commandApproveCommand) Help() string {
	return `Prints the token with which the submitter confirms the command. The API key must belong to another principal of the same tenant,
must have the scope that the command needs, and must be older than the command. Neither key may have been made with the other
("made_by" in /v1/keys).

Example:

    GODWIT_KEY=gdw_… godwit command approve cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`
}

func (c *commandApproveCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	commands := cl.Commands()
	a, err := commands.Status(env.ctx, c.ID)
	if err != nil {
		return fmt.Errorf("approve command: %w", err)
	}
	if !c.Yes {
		if !env.session().Interactive {
			return errors.New("there is no terminal to ask at: add --yes to approve it")
		}
		registry, err := commands.Registry(env.ctx)
		if err != nil {
			return fmt.Errorf("approve command: %w", err)
		}
		d, err := declared(registry, a.Intent.Entity+"."+a.Intent.Action)
		if err != nil {
			return err
		}
		describe(env, d, a)
		answer, err := env.session().Ask("Approve it? Type yes: ")
		if err != nil {
			return err
		}
		if !strings.EqualFold(answer, "yes") && !strings.EqualFold(answer, "y") {
			return errors.New("not approved")
		}
	}
	approval, err := commands.StepUp(env.ctx, c.ID)
	if err != nil {
		return fmt.Errorf("approve command: %w", err)
	}
	if c.JSON {
		return printJSON(env.stdout, approval)
	}
	_, err = fmt.Fprintln(env.stdout, approval.Token)
	return err
}
