package main

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/godwit-hq/godwit/internal/cli"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

func testModel(t *testing.T) *kong.Application {
	t.Helper()
	env := &environment{ctx: t.Context(), stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, lookup: func(string) (string, bool) { return "", false }}
	parser, err := newParser(env, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

func TestCommandReferenceIsCurrent(t *testing.T) {
	const path = "../../docs/cli.md"
	want := cli.Reference(testModel(t))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != want {
		t.Errorf("docs/cli.md is not current (%v): run go test ./cmd/godwit -run TestCommandReference -update", err)
	}
}

// Every command has a help text and is in docs/cli.md.
func TestEveryCommandIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var visit func(n *kong.Node, name string)
	visit = func(n *kong.Node, name string) {
		for _, child := range n.Children {
			if child.Hidden {
				continue
			}
			full := name + " " + child.Name
			if !strings.Contains(string(page), full) {
				t.Errorf("docs/cli.md lacks %s", full)
			}
			if child.Help == "" {
				t.Errorf("%s has no help", full)
			}
			visit(child, full)
		}
	}
	visit(testModel(t).Node, "godwit")
}
