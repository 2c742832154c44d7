// Command godwit accepts events once and delivers them at least once. Each file here is one subcommand; internal/app does
// the work.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/godwit-hq/godwit/internal/cli"
	"github.com/godwit-hq/godwit/internal/config"
)

type commands struct {
	Dev       devCommand         `cmd:"" help:"Try it: server, store, sample endpoint and sample events in one command."`
	Serve     serveCommand       `cmd:"" help:"Run the server."`
	Send      sendCommand        `cmd:"" help:"Post an event."`
	Tail      tailCommand        `cmd:"" help:"Follow the attempts of a tenant as they happen."`
	Login     cli.LoginCommand   `cmd:"" group:"manage" help:"Check an API key with a server, and save both as a context."`
	Whoami    cli.WhoamiCommand  `cmd:"" group:"manage" help:"Show the tenant and the scopes of the API key in force."`
	Context   cli.ContextCommand `cmd:"" group:"manage" help:"List, choose and delete contexts."`
	cli.Nouns `embed:""`

	Apply       cli.ApplyCommand   `cmd:"" group:"manage" help:"Make the server as YAML files describe it, and show the difference."`
	Export      cli.ExportCommand  `cmd:"" group:"manage" help:"Write YAML files for apply from the server."`
	Types       typesCommand       `cmd:"" group:"manage" help:"List, show, write, delete, import and export event types with their schemas."`
	Command     commandCommand     `cmd:"" help:"Submit, confirm and follow commands. Each takes effect once."`
	Evidence    evidenceCommand    `cmd:"" help:"Export, verify and show the evidence of commands."`
	Keys        keysCommand        `cmd:"" group:"manage" help:"Create and revoke API keys, and maintain the key ring."`
	Backup      backupCommand      `cmd:"" help:"Copy the data of a server on SQLite, while it runs."`
	Restore     restoreCommand     `cmd:"" help:"Bring a backup into a data directory."`
	Nodes       nodesCommand       `cmd:"" help:"List the nodes that share a database, and their shards."`
	Migrate     migrateCommand     `cmd:"" help:"Show the schema version of the store, or upgrade it."`
	Bench       benchCommand       `cmd:"" help:"Measure throughput and latency on this machine."`
	Conformance conformanceCommand `cmd:"" help:"Test a running server against a specification, from outside."`
	Doctor      doctorCommand      `cmd:"" help:"Check whether the server can run with this machine and configuration."`
	Health      healthCommand      `cmd:"" help:"Ask the server on this machine whether it is ready, for health checks of containers."`
	Config      configCommand      `cmd:"" help:"Show the value of every setting, and where it came from."`
	Version     versionCommand     `cmd:"" help:"Show the version of this binary."`

	Completion cli.CompletionCommand `cmd:"" help:"Print a script that completes commands and ids in bash, zsh or fish."`
	Man        cli.ManCommand        `cmd:"" help:"Print or write man pages."`

	BenchRelay benchRelayCommand `cmd:"" hidden:""`
}

const about = `Godwit accepts an event once and delivers it at least once to every subscriber, signed, retried and recorded.

Start with "godwit dev": it needs nothing and shows everything.`

// environment holds the process's inputs and outputs for a command.
type environment struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	lookup func(string) (string, bool)
	source *config.Source
	parsed *kong.Context

	stopDelay atomic.Int64    // how long the server answers after the first signal, in nanoseconds
	hurry     <-chan struct{} // closed at the second signal within that time
}

// session returns the streams of the command for the commands of internal/cli.
func (e *environment) session() *cli.Session {
	s := cli.NewSession(e.ctx, e.stdin, e.stdout, e.stderr, e.lookup)
	s.Parsed = e.parsed
	return s
}

func main() {
	// net/http's client writes data that a receiver sends after its response to the standard logger. That data may echo
	// our payload or credential. Our own code does not use that logger.
	log.SetOutput(io.Discard)
	signal.Ignore(syscall.SIGPIPE) // a closed pipe becomes a failed write, so that `godwit dev | head` still cleans up
	hurry := make(chan struct{})
	env := &environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv, hurry: hurry}
	var stop context.CancelFunc
	env.ctx, stop = context.WithCancel(context.Background())
	go env.heedSignals(stop, hurry)
	os.Exit(run(os.Args[1:], env))
}

// heedSignals stops the command in order at the first signal. While a server delays its stop, the second signal ends that delay.
// After that, signals have their usual effect, so the next one ends the process at once.
func (e *environment) heedSignals(stop context.CancelFunc, hurry chan<- struct{}) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	delay := time.Duration(e.stopDelay.Load())
	if delay <= 0 {
		signal.Stop(signals)
		stop()
		return
	}
	stop()
	select {
	case <-signals:
		close(hurry)
	case <-time.After(delay):
	}
	signal.Stop(signals)
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitGoesOn = 3 // nothing failed, and the work is not done yet
)

// errGoesOn ends a command whose work is not done yet. The command has printed everything already.
var errGoesOn = errors.New("not done yet")

// errSilent ends a command with failure. The command has printed everything already.
var errSilent = errors.New("failed")

// newParser makes the parser of the command line.
func newParser(env *environment, exit func(int)) (*kong.Kong, error) {
	env.source = config.NewSource(env.lookup)
	return kong.New(&commands{},
		kong.Name("godwit"), kong.Description(about), env.source, kong.PostBuild(cli.Describe),
		kong.ExplicitGroups([]kong.Group{{Key: "manage", Title: "Manage a running server:"}}),
		kong.Writers(env.stdout, env.stderr), kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110, NoExpandSubcommands: true}),
	)
}

func run(args []string, env *environment) int {
	code := -1
	parser, err := newParser(env, func(n int) { code = n; panic(exited{}) })
	if err != nil {
		fmt.Fprintln(env.stderr, "godwit:", err)
		return exitFailed
	}
	if len(args) > 0 && args[0] == cli.CompleteCommand {
		cli.Complete(env.session(), parser.Model, args[1:])
		return exitOK
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parse(parser, args)
	if code >= 0 {
		return code
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitFailed // the reader has closed the output
	}
	if err != nil {
		fmt.Fprintln(env.stderr, "godwit:", err)
		fmt.Fprintln(env.stderr, hint(err))
		return exitUsage
	}
	env.parsed = parsed
	session := env.session()
	if err := parsed.Run(env, session); err != nil {
		if errors.Is(err, errGoesOn) || errors.Is(err, cli.ErrPending) {
			return exitGoesOn
		}
		if !errors.Is(err, errSilent) && !errors.Is(err, cli.ErrReported) && !errors.Is(err, syscall.EPIPE) {
			fmt.Fprintln(env.stderr, "godwit:", err)
			if hint := session.Hint(err); hint != "" {
				fmt.Fprintln(env.stderr, hint)
			}
		}
		return exitFailed
	}
	return exitOK
}

// exited unwinds kong when it wants to exit (--help), because tests run commands in their own process.
type exited struct{}

func parse(parser *kong.Kong, args []string) (ctx *kong.Context, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(exited); !ours {
				panic(r)
			}
		}
	}()
	return parser.Parse(args)
}

func hint(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		if cmd := wrong.Context.Command(); cmd != "" {
			return fmt.Sprintf("Try \"godwit %s --help\".", cmd)
		}
	}
	return "Try \"godwit --help\"."
}
