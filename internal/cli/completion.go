package cli

import "fmt"

// CompletionCommand prints a script that completes commands, flags and live ids in a shell.
type CompletionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help returns the text that --help shows.
func (CompletionCommand) Help() string {
	return `The script asks godwit for candidates: commands, flags, their values, contexts, and ids from the server in force. If that does not answer
within 1.5 s, or refuses the key, there are no ids.

Examples:

    source <(godwit completion bash)                                            # in ~/.bashrc
    godwit completion zsh > "${fpath[1]}/_godwit"                               # once
    godwit completion fish > ~/.config/fish/completions/godwit.fish             # once`
}

// Run prints the script.
func (c *CompletionCommand) Run(s *Session) error {
	_, err := fmt.Fprint(s.Stdout, completionScripts[c.Shell])
	return err
}

var completionScripts = map[string]string{
	"bash": `# Completion of godwit for bash: source <(godwit completion bash)
_godwit() {
	local IFS=$'\n'
	COMPREPLY=($("${COMP_WORDS[0]}" __complete bash "${COMP_LINE:0:COMP_POINT}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null))
}
complete -o default -F _godwit godwit
`,
	"zsh": `#compdef godwit
# Completion of godwit for zsh: godwit completion zsh > "${fpath[1]}/_godwit"
_godwit() {
	local -a found
	local line
	for line in "${(@f)$("${words[1]}" __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -n "$line" ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	if (( ${#found} )); then
		_describe godwit found
	else
		_files
	fi
}
if [[ "${funcstack[1]}" = _godwit ]]; then
	_godwit "$@"
else
	compdef _godwit godwit
fi
`,
	"fish": `# Completion of godwit for fish: godwit completion fish > ~/.config/fish/completions/godwit.fish
function __godwit_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	set -l found ($words[1] __complete fish $words[2..-1] "$current" 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path "$current"
	end
end
complete -c godwit -f -a '(__godwit_complete)'
`,
}
