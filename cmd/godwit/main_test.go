package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"godwit": main})
}

// The scripts in testdata/script use the command as people do: as a separate process, with its output and exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// kong wraps help at the terminal's width
			e.Setenv("COLUMNS", "110")
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// postgres NAME sets a variable to the URL of a new, empty database.
			"postgres": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: postgres NAME")
				}
				ts.Setenv(args[0], postgrestest.URL(t))
			},
			// server starts a server for the script and puts its address into the environment.
			"server": func(ts *testscript.TestScript, _ bool, _ []string) {
				srv := apptest.Start(t, apptest.Options{Configure: func(c *config.Config) { c.Commands.Probe = true }})
				ts.Setenv("GODWIT_URL", srv.URL)
				ts.Setenv("GODWIT_KEY", srv.Key)
				ts.Setenv("SECOND_KEY", srv.NewKey(srv.Tenant, godwit.AllScopes...))
				other, readKey := srv.NewTenant("other", godwit.ScopeRead)
				ts.Setenv("READ_KEY", readKey)
				ts.Setenv("OTHER_TENANT", other.String())
				ts.Setenv("ENDPOINT", srv.Endpoint("http://127.0.0.1:9/", apptest.Fields{"patterns": []string{"no.such.thing"}}).ID.String())
			},
			// member NAME MEMBER sets a variable to a member of the printed JSON object.
			"member": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 2 {
					ts.Fatalf("usage: member NAME MEMBER")
				}
				var object map[string]any
				ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &object))
				ts.Setenv(args[0], fmt.Sprint(object[args[1]]))
			},
			// exits CODE COMMAND... runs a command that must exit with the code.
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits CODE COMMAND...")
				}
				err := ts.Exec(args[1], args[2:]...)
				var ended *exec.ExitError
				code := 0
				if errors.As(err, &ended) {
					code = ended.ExitCode()
				}
				if strconv.Itoa(code) != args[0] {
					ts.Fatalf("ended with %d", code)
				}
			},
		},
	})
}

func TestTailShowsAttemptsUntilItIsStopped(t *testing.T) {
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(503))
	srv := apptest.Start(t, apptest.Options{})
	srv.Endpoint(sink.URL("/"))
	for _, args := range [][]string{{"tail"}, {"tail", "--json"}} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		var complaint strings.Builder
		code := make(chan int, 1)
		go func() {
			env := &environment{ctx: ctx, stdout: w, stderr: &complaint, stdin: strings.NewReader(""), lookup: func(string) (string, bool) { return "", false }}
			code <- run(append(args, "--url", srv.URL, "--key", srv.Key), env)
			w.Close()
		}()
		stop := publishUntilRead(t, srv)
		line, err := bufio.NewReader(r).ReadString('\n')
		stop()
		want := "order.paid             #"
		if len(args) > 1 {
			want = `"event_type":"order.paid"`
		}
		if err != nil || !strings.Contains(line, want) || !strings.Contains(line, "503") || !strings.Contains(line, "transient") {
			t.Errorf("%v printed %q, %v", args, line, err)
		}
		cancel()
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if c := <-code; c != exitOK {
			t.Errorf("%v ended with %d: %s", args, c, complaint.String())
		}
	}
}

// publishUntilRead posts one event after the other, because a watcher sees only events after its arrival.
func publishUntilRead(t *testing.T, srv *apptest.Server) (stop func()) {
	enough, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-enough:
				return
			default:
				srv.Publish("order.paid", `{}`)
			}
		}
	}()
	return func() { close(enough); <-ended }
}
