package cli

import (
	"strings"
	"testing"
)

// Every noun of the command line has a definition, and every verb that needs one has it.
func TestEveryVerbIsDefined(t *testing.T) {
	model := newParser(t).Model
	nouns := 0
	for _, n := range model.Children {
		r := resources[n.Name]
		if r == nil {
			continue
		}
		nouns++
		if n.Name == "types" {
			continue
		}
		if r.details[""] == "" || !strings.Contains(n.Detail, "Example") {
			t.Errorf("%s has no examples", n.Name)
		}
		for _, v := range n.Children {
			kind := v.Target.Type().Name()
			_, defined := r.verbs[v.Name]
			if needs := strings.HasPrefix(kind, "actCommand") || kind == "partListCommand"; needs && !defined {
				t.Errorf("%s %s has no definition", n.Name, v.Name)
			}
			if kind == "deleteCommand" && past[v.Name] == "" {
				t.Errorf("%s %s has no word for what was done", n.Name, v.Name)
			}
		}
		for verb := range r.verbs {
			if findCommand(n, verb) == nil {
				t.Errorf("%s has no verb %s", n.Name, verb)
			}
		}
		for verb := range r.details {
			if verb != "" && findCommand(n, verb) == nil {
				t.Errorf("the help of %s %s is for no command", n.Name, verb)
			}
		}
	}
	if nouns != len(resources)-1 { // keys are in cmd/godwit
		t.Errorf("%d nouns for %d resources", nouns, len(resources))
	}
}

func TestManPages(t *testing.T) {
	model := newParser(t).Model
	for _, n := range model.Children {
		page := manPage("godwit-"+n.Name, n)
		for _, v := range n.Children {
			if !strings.Contains(page, ".SH "+`"`+strings.ToUpper(v.Name)+`"`) {
				t.Errorf("the page of %s lacks %s", n.Name, v.Name)
			}
			for _, f := range v.Flags {
				if f.Name != "help" && !strings.Contains(page, roff("--"+f.Name)) {
					t.Errorf("the page of %s lacks --%s", n.Name, f.Name)
				}
			}
		}
	}
	if got := roff(`.a\b-c`); got != `\&.a\eb\-c` {
		t.Errorf("escaped as %s", got)
	}
}
