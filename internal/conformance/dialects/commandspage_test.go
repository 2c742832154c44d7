package dialects

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/builtincommand"
)

// TestCommandsPage: docs/commands.md agrees with the registry in both directions.
func TestCommandsPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)

	srv := apptest.Start(t, apptest.Options{})
	var registry struct {
		Commands []command.Declaration `json:"commands"`
	}
	srv.Must(apptest.Call{Path: "/ids/v1/registry"}, &registry)
	if len(registry.Commands) == 0 {
		t.Fatal("nothing is registered")
	}
	for _, d := range registry.Commands {
		scopes := "`" + strings.Join(d.Scopes, ", ") + "`"
		if len(d.Scopes) == 0 {
			scopes = "–" // the API that submits it has checked the caller
		}
		if !strings.Contains(page, "| `"+d.Name()+"` | "+scopes+" |") {
			t.Errorf("docs/commands.md does not list %s with its scope %v", d.Name(), d.Scopes)
		}
	}

	file := regexp.MustCompile("(?ms)^```json\n(\\{\"commands\".*?)^```$").FindStringSubmatch(page)
	if file == nil {
		t.Fatal("the page shows no declaration file")
	}
	declared, err := command.ReadDeclarations(strings.NewReader(file[1]))
	if err != nil {
		t.Fatal(err)
	}
	reg := command.NewRegistry()
	if err := builtincommand.RegisterRemote(reg, builtincommand.Config{}, declared); err != nil {
		t.Error(err)
	}
	for _, member := range regexp.MustCompile(`json:"([a-z_]+)`).FindAllStringSubmatch(source(t), -1) {
		if !strings.Contains(page, member[1]) {
			t.Errorf("docs/commands.md does not tell of the member %s", member[1])
		}
	}
}

// source is where declarations are defined.
func source(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "command", "declaration.go"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
