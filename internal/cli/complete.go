package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// CompleteCommand is the hidden command that the completion scripts call: godwit __complete SHELL WORDS…
const CompleteCommand = "__complete"

// completionTimeout limits how long a shell waits for ids from a server.
const completionTimeout = 1500 * time.Millisecond

// A candidate is a word that may stand at the place of the cursor.
type candidate struct {
	word string
	help string
}

// Complete answers a completion script. It prints one candidate a line, and nothing at all if something fails: a shell has no place
// for errors.
func Complete(s *Session, model *kong.Application, args []string) {
	if len(args) < 2 {
		return
	}
	shell, words := args[0], args[1:]
	typed := ""
	if shell == "bash" { // the line up to the cursor, and what bash takes for the current word
		line, current := args[1], ""
		if len(args) > 2 {
			current = args[2]
		}
		words = splitLine(line)
		if len(words) < 2 {
			return
		}
		words = words[1:]
		typed = breakPrefix(words[len(words)-1], current)
	}
	last := words[len(words)-1]
	for _, c := range candidates(s, model, words) {
		if !strings.HasPrefix(c.word, last) {
			continue
		}
		if shell == "bash" {
			fmt.Fprintln(s.Stdout, strings.TrimPrefix(c.word, typed))
			continue
		}
		fmt.Fprintf(s.Stdout, "%s\t%s\n", c.word, strings.ReplaceAll(Printable(c.help), "\t", " "))
	}
}

// splitLine splits a command line at spaces that are not quoted. The last word may be empty.
func splitLine(line string) (words []string) {
	var word strings.Builder
	quote := rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
			word.WriteRune(r)
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\\':
			escaped = true
		case r == '\'' || r == '"':
			quote = r
		case r == ' ' || r == '\t':
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
		default:
			word.WriteRune(r)
		}
	}
	return append(words, word.String())
}

// breakPrefix is the part of the last word that bash does not replace: bash also breaks words at "=" and ":".
func breakPrefix(last, current string) string {
	if current == "=" || current == ":" {
		return last
	}
	if prefix, ok := strings.CutSuffix(last, current); ok {
		return prefix
	}
	return ""
}

// candidates returns what may stand in the place of the last word, whatever is typed of it.
func candidates(s *Session, model *kong.Application, words []string) []candidate {
	node, place, given := model.Node, 0, map[string]string{}
	var wants *kong.Flag // the flag whose value comes next
	for _, word := range words[:len(words)-1] {
		switch {
		case wants != nil:
			given[wants.Name], wants = word, nil
		case strings.HasPrefix(word, "-") && len(word) > 1:
			name, value, hasValue := strings.Cut(word, "=")
			flag := findFlag(node, name)
			switch {
			case flag == nil:
			case hasValue:
				given[flag.Name] = value
			case !flag.IsBool() && !flag.IsCounter():
				wants = flag
			}
		default:
			if child := findCommand(node, word); child != nil {
				node = child
			} else {
				place++
			}
		}
	}
	last := words[len(words)-1]
	switch {
	case wants != nil:
		return valuesOf(s, node, wants.Value, given, "")
	case strings.HasPrefix(last, "-"):
		name, _, hasValue := strings.Cut(last, "=")
		if flag := findFlag(node, name); hasValue && flag != nil {
			return valuesOf(s, node, flag.Value, given, name+"=")
		}
		return flagsOf(node)
	case place < len(node.Positional):
		return append(commandsOf(node), valuesOf(s, node, node.Positional[place], given, "")...)
	}
	return commandsOf(node)
}

func commandsOf(node *kong.Node) (out []candidate) {
	for _, child := range node.Children {
		if !child.Hidden {
			out = append(out, candidate{child.Name, child.Help})
		}
	}
	return out
}

func findCommand(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name && !child.Hidden {
			return child
		}
	}
	return nil
}

// flagsOf lists the flags of a command and of those above it.
func flagsOf(node *kong.Node) (out []candidate) {
	for n := node; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if f.Hidden {
				continue
			}
			out = append(out, candidate{"--" + f.Name, f.Help})
			if f.Tag.Negatable != "" {
				out = append(out, candidate{"--no-" + f.Name, f.Help})
			}
		}
	}
	return out
}

func findFlag(node *kong.Node, word string) *kong.Flag {
	for n := node; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

// valuesOf lists the values of a flag or an argument, as far as they are known.
func valuesOf(s *Session, node *kong.Node, value *kong.Value, given map[string]string, prefix string) (out []candidate) {
	if value.Enum != "" {
		for word := range strings.SplitSeq(value.Enum, ",") {
			if word != "" {
				out = append(out, candidate{word: word})
			}
		}
	}
	switch source := value.Tag.Get("complete"); source {
	case "":
	case "contexts":
		if file, err := s.contexts(); err == nil {
			for _, name := range file.names() {
				out = append(out, candidate{name, file.Contexts[name].URL})
			}
		}
	case "noun":
		if node.Parent != nil {
			out = append(out, s.live(resources[node.Parent.Name], given)...)
		}
	default:
		out = append(out, s.live(resources[source], given)...)
	}
	for i := range out {
		out[i].word = prefix + out[i].word
	}
	return out
}

// live lists the newest items of a noun on the server in force.
func (s *Session) live(r *resource, given map[string]string) (out []candidate) {
	if r == nil {
		return nil
	}
	setting := func(flag, variable string) string {
		if v := given[flag]; v != "" {
			return v
		}
		v, _ := s.Lookup(variable)
		return v
	}
	conn := Connection{
		URL: setting("url", "GODWIT_URL"), Key: setting("key", "GODWIT_KEY"), Context: setting("context", "GODWIT_CONTEXT"), Tenant: setting("tenant", "GODWIT_TENANT"),
		Environment: setting("environment", "GODWIT_ENVIRONMENT"),
	}
	cl, err := conn.Client(s)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.Context, completionTimeout)
	defer cancel()
	page, err := cl.Resource(r.path).Page(ctx, url.Values{"limit": {"200"}})
	if err != nil {
		return nil
	}
	for _, item := range page.Items {
		if uid := idOf(item, r.uid()); uid != "" { // an id that its owner chose is easier to know
			out = append(out, candidate{uid, r.summary(s, item)})
		}
		out = append(out, candidate{r.id(item), r.summary(s, item)})
	}
	return out
}

// summary describes an item in a few words: the columns after the id that are no times.
func (r *resource) summary(s *Session, item json.RawMessage) string {
	v, err := parseValue(item)
	if err != nil {
		return ""
	}
	var parts []string
	for i := range r.columns {
		c := &r.columns[i]
		if i > 0 && c.kind == text && !c.spare {
			if cell := c.cell(s, v); cell != "" {
				parts = append(parts, clip(cell, 40))
			}
		}
	}
	return strings.Join(parts, " ")
}
