package main

import (
	"fmt"

	"github.com/godwit-hq/godwit/internal/config"
)

type doctorCommand struct {
	JSON            bool `name:"json" help:"Print one JSON object for each check."`
	config.FileFlag `embed:""`
	config.Config   `embed:""`
}

// Help returns the text that --help shows.
func (doctorCommand) Help() string {
	return `Checks everything that a server with the same settings would use, changes nothing, and says how to solve each problem. It ends
with 1 if a problem would keep the server from working or lose acknowledged events. With PostgreSQL it also checks the database's
settings, its clock, the connections of all nodes and their versions.

Examples:

    godwit doctor
    godwit doctor --config /etc/godwit.yaml
    godwit doctor --store postgres://godwit@db/godwit --keyring-file /etc/godwit/keyring`
}

// finding is the result of a check.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warn or fail
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`
}

const (
	resultOK   = "ok"
	resultWarn = "warn"
	resultFail = "fail"
)

func ok(format string, args ...any) finding {
	return finding{Result: resultOK, Detail: fmt.Sprintf(format, args...)}
}

func warn(advice, format string, args ...any) finding {
	return finding{Result: resultWarn, Detail: fmt.Sprintf(format, args...), Advice: advice}
}

func fail(advice, format string, args ...any) finding {
	return finding{Result: resultFail, Detail: fmt.Sprintf(format, args...), Advice: advice}
}

func (c *doctorCommand) Run(env *environment) error {
	_, originsErr := env.source.Origins(env.parsed)
	e := &examination{env: env, cfg: &c.Config, originsErr: originsErr}
	bad := false
	p := newPalette(env.stdout)
	for _, check := range e.checks() {
		f := check.run()
		f.Check = check.name
		bad = bad || f.Result == resultFail
		if c.JSON {
			if err := printJSON(env.stdout, f); err != nil {
				return err
			}
			continue
		}
		colour := map[string]string{resultOK: "32", resultWarn: "33", resultFail: "31"}[f.Result]
		fmt.Fprintf(env.stdout, "%s  %-12s %s\n", p.paint(colour, fmt.Sprintf("%-4s", f.Result)), f.Check, f.Detail)
		if f.Advice != "" {
			fmt.Fprintf(env.stdout, "      %12s → %s\n", "", f.Advice)
		}
	}
	if bad {
		return errSilent
	}
	return nil
}
