package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// ManCommand writes man pages, made from the definitions of the commands.
type ManCommand struct {
	Command string `arg:"" optional:"" help:"Print the page of this command. Defaults to that of godwit itself."`
	Dir     string `name:"dir" help:"Write the pages of all commands into this directory." placeholder:"DIR" type:"path"`
}

// Help returns the text that --help shows.
func (ManCommand) Help() string {
	return `Examples:

    godwit man endpoints | man -l -
    godwit man --dir /usr/local/share/man/man1`
}

// Run writes the pages.
func (c *ManCommand) Run(s *Session) error {
	model := s.Parsed.Model
	pages := map[string]*kong.Node{"godwit": model.Node}
	for _, n := range model.Children {
		if !n.Hidden {
			pages["godwit-"+n.Name] = n
		}
	}
	if c.Dir == "" {
		name := "godwit"
		if c.Command != "" {
			name += "-" + c.Command
		}
		page, ok := pages[name]
		if !ok {
			return fmt.Errorf("there is no command %q; \"godwit --help\" lists what there is", c.Command)
		}
		_, err := fmt.Fprint(s.Stdout, manPage(name, page))
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(c.Dir, name+".1"), []byte(manPage(name, page)), 0o644); err != nil {
			return fmt.Errorf("write man pages: %w", err)
		}
	}
	s.say("wrote %d pages to %s", len(pages), c.Dir)
	return nil
}

// roff escapes a text for troff.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// manPage writes the page of a command and its subcommands.
func manPage(name string, node *kong.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"Godwit\" \"Godwit\"\n.nh\n.ad l\n.SH NAME\n", strings.ToUpper(name))
	summary := strings.TrimSuffix(node.Help, ".")
	if node.Type == kong.ApplicationNode {
		summary = "webhook and event delivery server"
	}
	fmt.Fprintf(&b, "%s \\- %s\n.SH SYNOPSIS\n.B %s\n%s\n", roff(name), roff(summary), roff(strings.ReplaceAll(name, "godwit-", "godwit ")), roff(usage(node)))
	b.WriteString(".SH DESCRIPTION\n")
	if node.Type == kong.ApplicationNode {
		manText(&b, node.Help)
		b.WriteString(".SH COMMANDS\n")
		for _, child := range node.Children {
			if !child.Hidden {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff("godwit-"+child.Name), roff(child.Help))
			}
		}
		return b.String()
	}
	manText(&b, node.Help+"\n\n"+node.Detail)
	manValues(&b, node)
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		fmt.Fprintf(&b, ".SH %q\n", strings.ToUpper(child.Name))
		fmt.Fprintf(&b, ".B %s\n%s\n.PP\n", roff("godwit "+node.Name+" "+child.Name), roff(usage(child)))
		manText(&b, child.Help+"\n\n"+child.Detail)
		manValues(&b, child)
	}
	b.WriteString(".SH SEE ALSO\n.BR godwit (1)\n")
	return b.String()
}

// manText writes paragraphs; indented lines are examples and are kept as they are.
func manText(b *strings.Builder, text string) {
	verbatim := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(line, "    ")
		switch {
		case indented && !verbatim:
			b.WriteString(".PP\n.nf\n.RS\n")
		case !indented && verbatim:
			b.WriteString(".RE\n.fi\n")
		}
		verbatim = indented
		switch {
		case indented:
			b.WriteString(roff(strings.TrimPrefix(line, "    ")) + "\n")
		case line == "":
			b.WriteString(".PP\n")
		default:
			b.WriteString(roff(line) + "\n")
		}
	}
	if verbatim {
		b.WriteString(".RE\n.fi\n")
	}
}

// manValues writes the arguments and flags of a command.
func manValues(b *strings.Builder, node *kong.Node) {
	for _, p := range node.Positional {
		fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(p.Name), roff(p.Help))
	}
	for _, f := range node.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.String()), roff(flagHelp(f)))
	}
}

// flagHelp is the help of a flag with the variable that stands for it.
func flagHelp(f *kong.Flag) string {
	if len(f.Envs) > 0 {
		return f.Help + " [" + strings.Join(f.Envs, ", ") + "]"
	}
	return f.Help
}

// usage is what follows the name of a command.
func usage(node *kong.Node) string {
	var parts []string
	for _, p := range node.Positional {
		word := "<" + p.Name + ">"
		if !p.Required {
			word = "[" + word + "]"
		}
		parts = append(parts, word)
	}
	if len(node.Children) > 0 {
		parts = append(parts, "<command>")
	}
	return strings.Join(append(parts, "[flags]"), " ")
}
