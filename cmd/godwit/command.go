package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/cli"
)

type commandCommand struct {
	Run     commandRunCommand     `cmd:"" help:"Submit a command, confirm it if necessary, and show its outcome."`
	List    commandListCommand    `cmd:"" help:"List the commands that the server knows."`
	Status  commandStatusCommand  `cmd:"" help:"Show the status of a command."`
	Confirm commandConfirmCommand `cmd:"" help:"Confirm a command that awaits confirmation."`
	Approve commandApproveCommand `cmd:"" help:"Approve a command of another API key with a second API key."`
}

// Help returns the text that --help shows.
func (commandCommand) Help() string {
	return `A command takes effect once, however often it is submitted: within its window, a repeat gets the outcome of the first.
Destructive commands must be confirmed; deleting a tenant also needs a second admin key.

Exit codes: 0 executed, now or before; 1 rejected, failed or refused; 3 in progress, or awaiting confirmation.

Examples:

    godwit command list
    godwit command run endpoint.delete --target sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit command run dead_letters.replay --arg type=order.paid --arg limit=100 --arg request=ticket-4711
    godwit command status cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f`
}

// finished turns the state of a command into the exit status of the process.
func finished(a *client.CommandAnswer) error {
	switch a.Status {
	case "executed", "compensated":
		return nil
	case "rejected", "failed":
		return errSilent
	}
	return errGoesOn
}

// printAnswer prints an answer for people: the answer on standard output, its problems on standard error.
func printAnswer(env *environment, a *client.CommandAnswer, asJSON bool) error {
	if asJSON {
		_, err := fmt.Fprintf(env.stdout, "%s\n", strings.TrimSpace(string(a.Raw)))
		return errors.Join(err, finished(a))
	}
	o := a.Outcome
	switch {
	case a.Awaits():
		fmt.Fprintf(env.stderr, "%s awaits confirmation until %s; nothing was done\n", a.CommandID, clockTime(a.ExpiresAt))
	case o == nil:
		fmt.Fprintf(env.stderr, "%s is in progress; ask again with \"godwit command status %s\"\n", a.CommandID, a.CommandID)
	case o.Reason != "":
		fmt.Fprintf(env.stderr, "%s %s: %s (%s)\n", a.CommandID, o.Status, cli.Printable(o.Detail), cli.Printable(o.Reason))
	default:
		how := o.Status
		if a.Decision == "duplicate_replayed" {
			how += " before; this is the outcome of then"
		}
		fmt.Fprintf(env.stderr, "%s %s\n", a.CommandID, how)
		fmt.Fprintln(env.stdout, cli.Printable(o.Summary))
		if len(o.Result) > 0 && string(o.Result) != "{}" {
			fmt.Fprintf(env.stdout, "%s\n", o.Result)
		}
		if o.SecretRedacted {
			fmt.Fprintln(env.stderr, "its secret was shown to the first submission and is kept nowhere")
		}
	}
	return finished(a)
}

func clockTime(t *time.Time) string {
	if t == nil {
		return "a time unknown"
	}
	return t.Local().Format(time.DateTime)
}

type commandListCommand struct {
	Name       string `arg:"" optional:"" help:"Show one command with the schema of its arguments, as JSON." placeholder:"ENTITY.ACTION"`
	JSON       bool   `name:"json" help:"Print the registry as JSON."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (commandListCommand) Help() string {
	return `Examples:

    godwit command list
    godwit command list dead_letters.purge
    godwit command list --json | jq '.commands[] | select(.requires_confirmation)'`
}

func (c *commandListCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	r, err := cl.Commands().Registry(env.ctx)
	if err != nil {
		return fmt.Errorf("list commands: %w", err)
	}
	if c.Name != "" {
		d, err := declared(r, c.Name)
		if err != nil {
			return err
		}
		return printJSON(env.stdout, d)
	}
	if c.JSON {
		_, err := fmt.Fprintf(env.stdout, "%s\n", strings.TrimSpace(string(r.Raw)))
		return err
	}
	w := tabwriter.NewWriter(env.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "COMMAND\tCLASS\tASKS FOR\tWHAT IT DOES")
	for i := range r.Commands {
		d := &r.Commands[i]
		asks := "-"
		if d.RequiresConfirmation {
			asks = "confirmation"
		}
		if d.RequiresStepUp {
			asks += ", second key"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cli.Printable(d.Name()), d.Class, asks, cli.Printable(d.Description))
	}
	return w.Flush()
}

func declared(r *client.CommandRegistry, name string) (*client.CommandDeclaration, error) {
	for i := range r.Commands {
		if r.Commands[i].Name() == name {
			return &r.Commands[i], nil
		}
	}
	return nil, fmt.Errorf("there is no command %q here; \"godwit command list\" shows what there is", name)
}

type commandStatusCommand struct {
	ID         string `arg:"" help:"Id of the command." placeholder:"CMD_ID"`
	JSON       bool   `name:"json" help:"Print the server's answer as JSON."`
	connection `embed:""`
}

func (c *commandStatusCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	a, err := cl.Commands().Status(env.ctx, c.ID)
	if err != nil {
		return fmt.Errorf("status of command: %w", err)
	}
	return printAnswer(env, a, c.JSON)
}
