// Package deploy holds the files that run Godwit, and no code. Its tests compare them with the program: a metric, a setting or
// a section of the documentation that is renamed must not leave an alert that never fires. The syntax of the files is checked
// by the programs that read them: make package-check.
package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// laterSection is the section of docs/metrics.md with the metrics that a healthy server need not have.
const laterSection = "Metrics that appear later"

func TestMetricsOfDashboardAndAlertsExist(t *testing.T) {
	page := scrape(t)
	documented := documentedMetrics(t, "")
	later := documentedMetrics(t, laterSection)
	instruments := instrumentNames(t)
	for name := range later {
		if !instruments[strings.TrimSuffix(strings.TrimSuffix(name, "_total"), "_seconds")] {
			t.Errorf("docs/metrics.md: section %q: %s is no metric of internal/telemetry", laterSection, name)
		}
	}
	for place, expr := range expressions(t) {
		for _, s := range selectors(expr) {
			name := s.family(page, later)
			switch labels, there := page[name]; {
			case name == "up": // Prometheus makes it
			case !there && !later[name]:
				t.Errorf("%s: the server has no metric %s: %s", place, name, expr)
			case !documented[name]:
				t.Errorf("%s: %s is not in docs/metrics.md", place, name)
			case there:
				for _, l := range s.labels {
					if !labels[l] {
						t.Errorf("%s: %s has no label %q: %s", place, name, l, expr)
					}
				}
			}
		}
	}
}

func TestMetricsAreDocumented(t *testing.T) {
	documented := documentedMetrics(t, "")
	for _, name := range slices.Sorted(maps.Keys(scrape(t))) {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue // those of every program in Go
		}
		if !documented[name] {
			t.Errorf("docs/metrics.md does not name %s", name)
		}
	}
}

func TestSelectorsOfExpressions(t *testing.T) {
	const expr = `histogram_quantile(0.99, sum by (instance, le) (rate(a_seconds_bucket{job="x,y}",instance=~"$i"}[5m]))) > 0.25
		and on (instance) min_over_time(b[$__rate_interval]) > 0 or absent(up{job="godwit"}) unless c offset 5m`
	want := []selector{{name: "a_seconds_bucket", labels: nil}, {name: "b"}, {name: "up"}, {name: "c"}}
	got := selectors(expr)
	if !slices.EqualFunc(got, want, func(a, b selector) bool { return a.name == b.name && slices.Equal(a.labels, b.labels) }) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := selectors(`d{status=~"a|b",job="x"}`); len(got) != 1 || !slices.Equal(got[0].labels, []string{"status"}) {
		t.Errorf("labels: %v", got)
	}
}

// scrape returns the metrics of a server that has delivered, retried, given up and refused, each with its labels.
func scrape(t *testing.T) map[string]map[string]bool {
	t.Helper()
	sink := apptest.NewSink(t)
	sink.Script("/flaky", apptest.Status(500), apptest.Status(200))
	sink.Script("/gone", apptest.Status(404))
	srv := apptest.Start(t, apptest.Options{TimeScale: 100_000})
	flaky := srv.Endpoint(sink.URL("/flaky"), apptest.Fields{"patterns": []string{"order.paid"}})
	gone := srv.Endpoint(sink.URL("/gone"), apptest.Fields{"patterns": []string{"order.lost"}})
	// First what may be counted after its answer; the last delivery is recorded later than all else.
	srv.Call(apptest.Call{Path: "/in/none", Body: `{}`})
	srv.WaitDelivery(srv.Publish("order.paid", `{}`), flaky, godwit.DeliveryAccepted)
	srv.WaitDelivery(srv.Publish("order.lost", `{}`), gone, godwit.DeliveryTerminal)

	r := srv.Must(apptest.Call{Path: "/metrics"}, nil)
	families := map[string]map[string]bool{}
	typeLine := regexp.MustCompile(`^# TYPE (\S+) (\S+)`)
	sample := regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
	family := ""
	for line := range strings.Lines(string(r.Body)) {
		if m := typeLine.FindStringSubmatch(line); m != nil {
			family = m[1]
			families[family] = map[string]bool{}
		} else if m := sample.FindStringSubmatch(line); m != nil && family != "" {
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				families[family][l[1]] = true
			}
		}
	}
	return families
}

// documentedMetrics returns the metrics that a section of docs/metrics.md names in code font; the empty section is the page.
func documentedMetrics(t *testing.T, section string) map[string]bool {
	t.Helper()
	text := read(t, "../docs/metrics.md")
	if section != "" {
		_, after, found := strings.Cut(text, "\n## "+section+"\n")
		if !found {
			t.Fatalf("docs/metrics.md has no section %q", section)
		}
		text, _, _ = strings.Cut(after, "\n## ")
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z]+_[a-z_]+)`").FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
	}
	return names
}

// instrumentNames returns the names by which internal/telemetry makes its metrics, in Prometheus' form without suffixes.
func instrumentNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range files(t, "../internal/telemetry/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`"((?:godwit|ids|ojs)[._][a-z_.]+)"`).FindAllStringSubmatch(read(t, file), -1) {
			names[strings.ReplaceAll(m[1], ".", "_")] = true
		}
	}
	return names
}

// expressions returns the expressions of dashboards and rules by their place.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range files(t, "grafana/*.json") {
		var d struct {
			Templating struct {
				List []struct {
					Name, Type string
					Query      any
				}
			}
			Panels []struct {
				ID          int
				Title, Type string
				Targets     []struct{ RefID, Expr string }
			}
		}
		if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, v := range d.Templating.List {
			if q, ok := v.Query.(map[string]any); ok && v.Type == "query" {
				text, _ := q["query"].(string)
				inner := regexp.MustCompile(`^label_values\((.*), *\w+\)$`).FindStringSubmatch(text)
				if inner == nil {
					t.Fatalf("%s: variable %s: cannot read %q", file, v.Name, text)
				}
				found[file+": variable "+v.Name] = inner[1]
			}
		}
		for _, p := range d.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %q shows nothing", file, p.Title)
			}
			for _, target := range p.Targets {
				found[fmt.Sprintf("%s: panel %d, %s, %s", file, p.ID, p.Title, target.RefID)] = target.Expr
			}
		}
	}
	for _, a := range alerts(t) {
		found["alert "+a.Alert] = a.Expr
	}
	return found
}

// An alert is a rule for Prometheus.
type alert struct {
	Alert, Expr string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var doc struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/godwit.rules.yaml")), &doc); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range doc.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no alerts found")
	}
	return all
}

// files returns the files of a pattern. There is at least one.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no file %s (%v)", pattern, err)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
