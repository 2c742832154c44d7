package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-hq/godwit/internal/postgrestest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"godwit": main})
}

// The scripts in testdata/script are the command as people use it: a process of its own, its output, its exit code.
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
			// postgres NAME sets a variable to the URL of an empty database of the script's own.
			"postgres": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: postgres NAME")
				}
				ts.Setenv(args[0], postgrestest.URL(t))
			},
		},
	})
}
