package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/cli"
)

type evidenceShowCommand struct {
	evidenceFile `embed:""`
	KeyOf        string `name:"key-of" help:"Show only items with this idempotency key." placeholder:"IDEMPOTENCY_KEY"`
	Command      string `name:"command" help:"Show only items with this command id, of the original or of a repeat." placeholder:"CMD_ID"`
	ByKey        bool   `name:"by-key" help:"One line for each idempotency key instead. Needs memory for every key."`
	JSON         bool   `name:"json" help:"Print one JSON object per line."`
}

// Help returns the text that --help shows.
func (evidenceShowCommand) Help() string {
	return `The file is verified on the way: what is shown holds, and where the first broken link is it ends, with 1. With
--key-of or --command it also tells how often the command was executed and what each caller got.

Examples:

    godwit evidence show march.ndjson
    godwit evidence show march.ndjson --command cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit evidence show march.ndjson --by-key --json | jq 'select(.executions > 1)'`
}

func (c *evidenceShowCommand) Run(env *environment) error {
	var summary evidence.Summary
	narrowed := c.KeyOf != "" || c.Command != ""
	shown := 0
	report, err := c.verify(env, func(_ int64, it *evidence.Item) error {
		if (c.KeyOf != "" && it.Key != c.KeyOf) || (c.Command != "" && it.CommandID != c.Command && it.SubmittedID != c.Command) {
			return nil
		}
		if narrowed || c.ByKey {
			summary.Add(it)
		}
		if c.ByKey {
			return nil
		}
		shown++
		return c.printItem(env, it, shown == 1)
	})
	if err != nil && report.Broken == nil {
		return fmt.Errorf("show evidence: %w", err)
	}
	switch {
	case c.ByKey:
		err = c.printKeys(env, summary.Keys())
	case narrowed && !c.JSON:
		err = printAnswers(env, summary.Keys())
	default:
		err = nil
	}
	if err != nil {
		return err
	}
	if report.Broken != nil {
		fmt.Fprintf(env.stderr, "%s is broken at %s\nNothing from there on is shown.\n", c.File, report.Broken.Error())
		return errSilent
	}
	if narrowed && shown == 0 && !c.ByKey {
		fmt.Fprintln(env.stderr, "the file has nothing of this command")
	}
	if !report.Pinned {
		fmt.Fprintln(env.stderr, "No key was pinned with --key: the file is whole, but may be anybody's.")
	}
	return nil
}

const showRow = "%-8s  %-27s  %-21s  %-18s  %-8s  %-40s  %-11s  %s\n"

// printItem prints each row at once: a file may be larger than memory.
func (c *evidenceShowCommand) printItem(env *environment, it *evidence.Item, first bool) error {
	if c.JSON {
		_, err := fmt.Fprintf(env.stdout, "%s\n", evidence.Line(it))
		return err
	}
	if first {
		if _, err := fmt.Fprintf(env.stdout, showRow, "SEQ", "AT", "TYPE", "DECISION", "EXECUTED", "COMMAND", "STATUS", "DETAIL"); err != nil {
			return err
		}
	}
	id := it.SubmittedID
	if id == "" {
		id = it.CommandID
	}
	executed := "-"
	if it.Executed {
		executed = "yes"
	}
	_, err := fmt.Fprintf(env.stdout, showRow, fmt.Sprint(it.Seq), it.At.Format("2006-01-02T15:04:05.000000Z"), cli.Printable(it.Type),
		dash(it.Decision), executed, dash(id), dash(it.OutcomeStatus), itemDetail(it))
	return err
}

func itemDetail(it *evidence.Item) string {
	var parts []string
	for _, s := range []string{it.Command, it.Reason} {
		if s != "" {
			parts = append(parts, cli.Printable(s))
		}
	}
	if it.CommandID != "" && it.SubmittedID != "" && it.CommandID != it.SubmittedID {
		parts = append(parts, "of "+cli.Printable(it.CommandID))
	}
	if it.EventID != "" {
		parts = append(parts, cli.Printable(it.EventID)+" to "+cli.Printable(it.EndpointID))
	}
	if it.ResponseStatus != 0 {
		parts = append(parts, fmt.Sprint("answered ", it.ResponseStatus))
	}
	if it.Checkpoint != nil {
		parts = append(parts, fmt.Sprint("covers item ", it.Checkpoint.Seq))
	}
	return strings.Join(parts, ", ")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return cli.Printable(s)
}

func (c *evidenceShowCommand) printKeys(env *environment, keys []evidence.KeySummary) error {
	if c.JSON {
		out := json.NewEncoder(env.stdout)
		for i := range keys {
			if err := out.Encode(&keys[i]); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "IDEMPOTENCY KEY\tCOMMAND\tEXECUTIONS\tREPLAYS\tCONFLICTS\tREFUSALS\tDELIVERED\tDEAD")
	for _, k := range keys {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", cli.Printable(k.Key), dash(k.Command), k.Executions, k.Replays, k.Conflicts, k.Refusals, k.Delivered, k.Dead)
	}
	return w.Flush()
}

// printAnswers prints the answer that each caller got.
func printAnswers(env *environment, keys []evidence.KeySummary) error {
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	for _, k := range keys {
		fmt.Fprintf(w, "\nKey %s: executed %s, %d replayed, %d in conflict, %d refused. Each caller got:\n",
			cli.Printable(k.Key), times(k.Executions), k.Replays, k.Conflicts, k.Refusals)
		for _, a := range k.Answers {
			what := dash(a.Status)
			if a.Reason != "" {
				what += " (" + cli.Printable(a.Reason) + ")"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", a.At.Format(time.RFC3339), dash(a.SubmittedID), dash(a.Actor), dash(a.Decision), what, dash(a.OutcomeRef))
		}
	}
	return w.Flush()
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
