package apply

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Printer shows plans.
type Printer struct {
	Out io.Writer
	// Color marks lines by colour.
	Color bool
	// Most is how many objects of a kind that would be created are shown; the others are counted. 0 shows all. Changes and deletions are
	// always shown.
	Most int
	// Width is how many characters of a value are shown. Defaults to 100.
	Width int
}

var signs = map[Action]struct{ sign, color string }{
	Create: {"+", "32"}, Update: {"~", "33"}, Delete: {"-", "31"}, Check: {"~", "33"},
}

// Show writes the difference between the server and the files.
func (pr *Printer) Show(p *Plan) error {
	var b strings.Builder
	shown, left := map[*Kind]int{}, map[*Kind]int{}
	for i, c := range p.Changes {
		if c.Action == Create {
			if shown[c.Kind]++; pr.Most > 0 && shown[c.Kind] > pr.Most {
				left[c.Kind]++
			} else {
				pr.change(&b, c)
			}
		} else if c.Action != Check {
			pr.change(&b, c)
		}
		if n := left[c.Kind]; n > 0 && (i+1 == len(p.Changes) || p.Changes[i+1].phase() != c.phase()) {
			for _, k := range []*Kind{environments, eventTypes, tenants, endpoints, sources} {
				if left[k] > 0 {
					fmt.Fprintln(&b, pr.paint(Create, fmt.Sprintf("+ %d more %ss; --all shows them", left[k], k.noun)))
				}
				left[k] = 0
			}
		}
	}
	_, err := io.WriteString(pr.Out, b.String())
	return err
}

// ShowOne writes one change.
func (pr *Printer) ShowOne(c *Change) error {
	var b strings.Builder
	pr.change(&b, c)
	_, err := io.WriteString(pr.Out, b.String())
	return err
}

func (pr *Printer) change(b *strings.Builder, c *Change) {
	fmt.Fprintln(b, pr.paint(c.Action, signs[c.Action].sign+" "+c.Address.String()))
	const most = 20 // a schema may differ in very many places
	for i, d := range c.Differences {
		if i == most {
			fmt.Fprintf(b, "      and %d more\n", len(c.Differences)-most)
			break
		}
		switch {
		case c.Action == Create:
			fmt.Fprintf(b, "      %s: %s\n", d.Path, pr.value(d.After))
		case d.After == nil:
			fmt.Fprintf(b, "      %s: %s → (none)\n", d.Path, pr.value(d.Before))
		case d.Before == nil:
			fmt.Fprintf(b, "      %s: (none) → %s\n", d.Path, pr.value(d.After))
		default:
			fmt.Fprintf(b, "      %s: %s → %s\n", d.Path, pr.value(d.Before), pr.value(d.After))
		}
	}
}

func (pr *Printer) paint(a Action, line string) string {
	if !pr.Color {
		return line
	}
	return "\x1b[" + signs[a].color + "m" + line + "\x1b[0m"
}

// value writes a value on one line.
func (pr *Printer) value(v any) string {
	if s, ok := v.(fmt.Stringer); ok {
		if _, isNumber := v.(json.Number); !isNumber {
			return s.String()
		}
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?"
	}
	line := strings.TrimSuffix(text.String(), "\n")
	width := pr.Width
	if width == 0 {
		width = 100
	}
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

// Summary counts what a plan would do.
func (p *Plan) Summary() string {
	if p.Count(Create)+p.Count(Update)+p.Count(Delete) == 0 {
		s := fmt.Sprintf("no change: %d objects are as the files describe them", p.Same+p.Count(Check))
		return s
	}
	return fmt.Sprintf("%d to create, %d to change, %d to delete; %d are as the files describe them",
		p.Count(Create), p.Count(Update), p.Count(Delete), p.Same+p.Count(Check))
}

// Summary counts what a run did.
func (r *Result) Summary(same int) string {
	if r.Created+r.Updated+r.Deleted+r.Skipped+len(r.Failed) == 0 {
		return fmt.Sprintf("no change: %d objects are as the files describe them", same+r.Unchanged)
	}
	s := fmt.Sprintf("%d created, %d changed, %d deleted; %d were as the files describe them", r.Created, r.Updated, r.Deleted, same+r.Unchanged)
	if n := len(r.Failed); n > 0 {
		s += fmt.Sprintf("; %d failed", n)
	}
	if r.Skipped > 0 {
		s += fmt.Sprintf("; %d not tried", r.Skipped)
	}
	return s
}

// MarshalJSON writes a change as one object.
func (c *Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Action      Action       `json:"action"`
		Kind        string       `json:"kind"`
		Environment string       `json:"environment,omitempty"`
		Tenant      string       `json:"tenant,omitempty"`
		ID          string       `json:"id"`
		At          string       `json:"at,omitempty"`
		Differences []Difference `json:"differences,omitempty"`
	}{c.Action, strings.ReplaceAll(c.Kind.noun, " ", "_"), c.Environment, c.Tenant, c.ID, c.At.String(), c.Differences})
}
