package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// grammar is the part of the command line that this package defines.
type grammar struct {
	Login   LoginCommand   `cmd:""`
	Whoami  WhoamiCommand  `cmd:""`
	Context ContextCommand `cmd:""`
	Nouns   `embed:""`
	Apply   ApplyCommand  `cmd:""`
	Export  ExportCommand `cmd:""`

	Types struct { // the verbs that cmd/godwit takes from this package
		List   TypeList `cmd:""`
		Get    Get      `cmd:""`
		Delete Delete   `cmd:""`
	} `cmd:""`
}

// user runs commands as a user with a home directory does.
type user struct {
	t           testing.TB
	env         map[string]string
	width       int
	interactive bool
	stdin       string
}

func newUser(t testing.TB) *user {
	return &user{t: t, env: map[string]string{"XDG_CONFIG_HOME": t.TempDir()}}
}

// at returns a user of the server who needs no login.
func at(t testing.TB, srv *apptest.Server) *user {
	u := newUser(t)
	u.env["GODWIT_URL"], u.env["GODWIT_KEY"] = srv.URL, srv.Key
	return u
}

func newParser(t testing.TB) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&grammar{}, kong.Name("godwit"), kong.PostBuild(Describe), kong.Exit(func(int) { t.Error("kong ended the process") }))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// session returns a session with these streams.
func (u *user) session(ctx context.Context, out, problems io.Writer) *Session {
	return &Session{
		Context: ctx, Stdin: strings.NewReader(u.stdin), Stdout: out, Stderr: problems, Now: time.Now, Width: u.width, Interactive: u.interactive,
		Lookup: func(name string) (string, bool) { v, ok := u.env[name]; return v, ok },
	}
}

// run runs a command. The flags that environment variables stand for are added to it, because kong reads those of the process.
func (u *user) run(args ...string) (stdout, stderr string, err error) {
	u.t.Helper()
	var out, problems bytes.Buffer
	s := u.session(u.t.Context(), &out, &problems)
	err = u.runIn(s, args...)
	return out.String(), problems.String(), err
}

func (u *user) runIn(s *Session, args ...string) error {
	u.t.Helper()
	for name, flag := range map[string]string{"GODWIT_URL": "--url", "GODWIT_KEY": "--key", "GODWIT_CONTEXT": "--context"} {
		if v := u.env[name]; v != "" && args[0] != "login" && args[0] != "context" {
			args = append(args, flag, v)
		}
	}
	parsed, err := newParser(u.t).Parse(args)
	if err != nil {
		return err
	}
	s.Parsed = parsed
	return parsed.Run(s)
}

// must runs a command that must succeed.
func (u *user) must(args ...string) (stdout, stderr string) {
	u.t.Helper()
	stdout, stderr, err := u.run(args...)
	if err != nil {
		u.t.Fatalf("%v: %v\n%s%s", args, err, stdout, stderr)
	}
	return stdout, stderr
}

// refused runs a command that must fail with an error that has all the parts.
func (u *user) refused(args []string, parts ...string) {
	u.t.Helper()
	stdout, stderr, err := u.run(args...)
	if err == nil {
		u.t.Errorf("%v succeeded:\n%s%s", args, stdout, stderr)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			u.t.Errorf("%v: %v; want %q", args, err, part)
		}
	}
}
