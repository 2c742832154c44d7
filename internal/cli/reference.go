package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

const referenceIntro = `# The command line

` + "`godwit COMMAND --help`" + ` shows the flags and examples of a command, ` + "`godwit man COMMAND`" + ` its man page. This page is made from the same definitions.

## Which server, which key

` + "```sh" + `
godwit login https://hooks.example.com        # asks for an API key, checks it, and saves both as a context
godwit whoami                                 # the tenant and the scopes of the key
godwit endpoints list                         # the context in use
godwit endpoints list --context staging       # another one
` + "```" + `

| setting | flag | environment | else |
| --- | --- | --- | --- |
| context | ` + "`--context`" + ` | ` + "`GODWIT_CONTEXT`" + ` | the one that ` + "`godwit login` or `godwit context use`" + ` chose last |
| URL | ` + "`--url`" + ` | ` + "`GODWIT_URL`" + ` | that of the context; ` + "`http://127.0.0.1:8080`" + ` |
| API key | ` + "`--key`" + ` | ` + "`GODWIT_KEY`" + ` | that of the context, for its own URL only |
| environment | ` + "`--environment`" + ` | ` + "`GODWIT_ENVIRONMENT`" + ` | that of the context, with its key only; the key's own |
| tenant | ` + "`--tenant`" + ` | ` + "`GODWIT_TENANT`" + ` | that of the context, with its key only; the key's own |

A flag takes precedence over the environment, the environment over the context. Contexts are in ` + "`godwit/config.yaml`" + ` below ` + "`$XDG_CONFIG_HOME`" + ` or
` + "`~/.config`" + `, with mode 0600; a file that other users can read or write is refused. No command prints a key of a context.

## Output

- Tables fit the terminal: ids are shortened in the middle (` + "`sub_018f…7c8d9e0f`" + `), which every command takes in place of the whole id as long as it is unique among the
  newest 2,000; times are relative; long texts are cut; the last columns are left out if there is no room. When the output is no terminal, nothing is shortened.
- ` + "`--json`" + ` prints what the API shows: lists as one object per line (` + "`types list`" + `: one array), everything else as one object.
- Lists show 50 items, the newest first; ` + "`--limit N`" + ` and ` + "`--all`" + ` show more. Filters of the API are flags. ` + "`--since`" + ` and ` + "`--until`" + ` take ` + "`2h`" + ` (that long ago), a date, or RFC 3339.
- ` + "`--watch`" + ` asks the server every ` + "`--interval`" + ` (2 s). On a terminal it shows the list anew; elsewhere it prints items that are new or have changed. ` + "`godwit tail`" + ` follows
  attempts without asking again and again.
- What people read goes to standard error, what programs read to standard output. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not done yet (` + "`godwit command`" + `).

## Changes

- ` + "`create`" + ` and ` + "`update`" + ` have flags for common members, and ` + "`--body`" + ` for a JSON document with any of them; flags win. Secrets come from files
  (` + "`--secret-file`, `--auth @FILE`" + `), since other users can see a command line.
- ` + "`delete`, `revoke`, `revoke-secret` and `purge`" + ` ask at a terminal and need ` + "`--yes`" + ` elsewhere. Where the API asks for a confirmation in two steps, the command takes both.
  Deleting a tenant needs the approval of a second key: ` + "`--approver-context`" + `, or the token that ` + "`godwit command approve`" + ` prints.
- ` + "`godwit keys`" + ` works on a server or on the store itself, which is how the first key is made; ` + "`godwit keys --help`" + ` tells when it is which.

## Completion and man pages

` + "```sh" + `
source <(godwit completion bash)                                   # in ~/.bashrc
godwit completion zsh > "${fpath[1]}/_godwit"
godwit completion fish > ~/.config/fish/completions/godwit.fish
godwit man --dir /usr/local/share/man/man1
` + "```" + `

Ids come from the server in force; if it does not answer within 1.5 s, there are none.

## Commands

<!-- Generated from the definitions of the commands by go test ./cmd/godwit -run TestCommandReference -update; do not edit. -->
`

// Reference returns the reference page of all commands, in Markdown.
func Reference(model *kong.Application) string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	for _, n := range model.Children {
		if n.Hidden {
			continue
		}
		fmt.Fprintf(&b, "\n### godwit %s\n\n%s\n", n.Name, n.Help)
		if len(n.Children) == 0 {
			fmt.Fprintf(&b, "\n%s\n", referenceRow(n))
			continue
		}
		b.WriteString("\n| command | |\n| --- | --- |\n")
		for _, child := range n.Children {
			if !child.Hidden {
				fmt.Fprintf(&b, "| `godwit %s %s` | %s%s |\n", n.Name, strings.TrimSpace(child.Name+" "+arguments(child)), child.Help, ownFlags(child))
			}
		}
	}
	return b.String()
}

func referenceRow(n *kong.Node) string {
	return strings.TrimSpace("`godwit " + strings.TrimSpace(n.Name+" "+arguments(n)) + "`" + ownFlags(n))
}

func arguments(n *kong.Node) string { return strings.TrimSuffix(usage(n), "[flags]") }

// common are flags that many commands share; the page describes them once.
var common = map[string]bool{"help": true, "url": true, "key": true, "context": true, "tenant": true, "json": true, "limit": true, "all": true, "watch": true, "interval": true, "yes": true, "body": true}

// ownFlags names the flags that are particular to a command. Settings of the server have a page of their own.
func ownFlags(n *kong.Node) string {
	var names []string
	for _, f := range n.Flags {
		if !f.Hidden && !common[f.Name] && !strings.Contains(f.Help, "[GODWIT_") {
			names = append(names, "`--"+f.Name+"`")
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " " + strings.Join(names, " ")
}
