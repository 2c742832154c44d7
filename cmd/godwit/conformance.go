package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/idsconformance"
)

type conformanceCommand struct {
	IDS conformanceIDSCommand `cmd:"" name:"ids" help:"Run six tests of the command executor of a running server, and print a verdict for each."`
}

// Help returns the text that --help shows.
func (conformanceCommand) Help() string {
	return `Tests a running server against a specification, from outside. It needs the URL and an API key.

Examples:

    godwit conformance ids --url https://godwit.example.com`
}

type conformanceIDSCommand struct {
	Parallel   int  `name:"parallel" help:"Number of clients that send the same command at the same time." default:"200" placeholder:"N"`
	JSON       bool `name:"json" help:"Print one JSON object."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (conformanceIDSCommand) Help() string {
	return `Runs the minimum tests of RFC-WF-0010 (IDS, section XIII) against any server that has the commands probe.touch and
probe.delete; Godwit has them with --commands-probe, and "godwit dev" always. Prints a line for each test and ends with 0
when all have passed, with 1 when one has failed or nothing could be tried.

Effects are counted by listing the events that the probes leave, so that the server is not taken at its word. The key needs
the scopes ingest, read and audit. Use a tenant of its own: what the suite leaves behind is events of type ids.probe and
evidence. Of many repeats at once a server may refuse some with 429, which executes nothing.

Examples:

    export GODWIT_KEY=gdw_…
    godwit conformance ids
    godwit conformance ids --url https://godwit.example.com --parallel 50
    godwit conformance ids --json | jq '.verdicts[] | select(.passed | not)'`
}

func (c *conformanceIDSCommand) Run(env *environment) error {
	if c.Key == "" {
		return errors.New("no API key: set GODWIT_KEY, or make one with \"godwit keys create\"")
	}
	if c.Parallel < 2 || c.Parallel > 5000 {
		return errors.New("--parallel: must be from 2 to 5000")
	}
	p := newPalette(env.stdout)
	verdicts, err := idsconformance.Run(env.ctx, idsconformance.Config{URL: c.URL, Key: c.Key, Now: time.Now, Parallel: c.Parallel}, func(v idsconformance.Verdict) {
		if !c.JSON {
			fmt.Fprintf(env.stdout, "%s  %s  %-28s  %s\n", passed(p, v.Passed), v.ID, v.Name, v.Detail)
		}
	})
	if err != nil {
		return fmt.Errorf("try %s: %w", c.URL, err)
	}
	failed := 0
	for _, v := range verdicts {
		if !v.Passed {
			failed++
		}
	}
	if c.JSON {
		err = printJSON(env.stdout, struct {
			URL      string                   `json:"url"`
			Passed   bool                     `json:"passed"`
			Verdicts []idsconformance.Verdict `json:"verdicts"`
		}{c.URL, failed == 0, verdicts})
	} else if failed > 0 {
		_, err = fmt.Fprintf(env.stdout, "%d of %d failed\n", failed, len(verdicts))
	} else {
		_, err = fmt.Fprintf(env.stdout, "all %d passed\n", len(verdicts))
	}
	if err == nil && failed > 0 {
		return errSilent
	}
	return err
}

func passed(p palette, ok bool) string {
	if ok {
		return p.outcome("accepted", "pass")
	}
	return p.outcome("terminal", "FAIL")
}
