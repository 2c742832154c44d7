package deploy

import (
	"regexp"
	"slices"
	"strings"
)

// A selector is a metric that a PromQL expression reads, with the labels that it selects by, apart from those that Prometheus adds
// to every series.
type selector struct {
	name   string
	labels []string
}

// family returns the name of the metric on the scraped page: a histogram has several series.
func (s selector) family(page map[string]map[string]bool, later map[string]bool) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(s.name, suffix); ok {
			if _, there := page[name]; there || later[name] {
				return name
			}
		}
	}
	return s.name
}

var (
	quoted      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	ranges      = regexp.MustCompile(`\[[^\]]*\]`)
	groupings   = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	durations   = regexp.MustCompile(`\boffset\s+\S+`)
	identifiers = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*(?:\{[^}]*\}|\()?`)
	matchers    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	operators   = []string{"and", "or", "unless", "bool", "inf", "nan"}
	added       = []string{"job", "instance"}
)

// selectors finds the metrics of an expression. It is no parser of PromQL: promtool checks the syntax.
func selectors(expr string) []selector {
	expr = quoted.ReplaceAllString(expr, `""`)
	for _, r := range []*regexp.Regexp{ranges, groupings, durations} {
		expr = r.ReplaceAllString(expr, " ")
	}
	var found []selector
	for _, id := range identifiers.FindAllString(expr, -1) {
		name, inside, _ := strings.Cut(id, "{")
		name = strings.TrimSpace(name)
		if strings.HasSuffix(name, "(") || slices.Contains(operators, strings.ToLower(name)) {
			continue
		}
		s := selector{name: name}
		for _, m := range matchers.FindAllStringSubmatch(inside, -1) {
			if !slices.Contains(added, m[1]) {
				s.labels = append(s.labels, m[1])
			}
		}
		found = append(found, s)
	}
	return found
}
