package config

import (
	"fmt"
	"strings"
)

// Reference returns the reference page of all settings, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Every setting can be given as a flag of ` + "`godwit serve`" + `, as an environment variable, or in a YAML file named by
` + "`--config`" + ` or ` + "`GODWIT_CONFIG`" + `. A flag takes precedence over the environment, the environment over the file, the file over the default. The
server refuses a key that is not in this list. ` + "`godwit config`" + ` prints the value of every setting and where it came from.

Durations are written like ` + "`90s`, `24h` or `30d`" + `, sizes like ` + "`512KiB` or `1MiB`" + `, lists with commas (in the file also as YAML
lists).

<!-- Generated from internal/config/config.go by ` + "`godwit config reference`" + `; do not edit. -->
`)
	groups, last := GroupDocs(), ""
	for _, s := range Settings() {
		if s.Group != last {
			last = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| flag | environment | file | meaning |\n| --- | --- | --- | --- |\n", title(s.Group), intro(groups[s.Group]))
		}
		flag := "`--" + s.Flag + "`"
		if s.Secret == "all" {
			flag = "—"
		}
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s |\n", flag, s.Env, s.Key, strings.ReplaceAll(s.Doc, "|", `\|`))
	}
	return b.String()
}

func title(group string) string {
	if group == "Config" {
		return "Server"
	}
	return group
}

// intro drops the part of a type's comment that addresses readers of the code.
func intro(doc string) string {
	if strings.HasPrefix(doc, "Config ") {
		return "The process itself."
	}
	return doc
}
