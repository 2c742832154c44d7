package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-hq/godwit/internal/config"
)

func TestAlertsLeadToTheirSections(t *testing.T) {
	_, after, found := strings.Cut(read(t, "../docs/operations.md"), "\n## Alerts\n")
	if !found {
		t.Fatal("docs/operations.md has no section Alerts")
	}
	section, _, _ := strings.Cut(after, "\n## ")
	unused := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(section, -1) {
		unused["docs/operations.md#"+anchor(m[1])] = true
	}
	headings := len(unused)
	tests := read(t, "prometheus/godwit.rules.test.yaml")
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		runbook := a.Annotations["runbook"]
		if !unused[runbook] && !seen[runbook] {
			t.Errorf("alert %s: no section %q", a.Alert, runbook)
		}
		seen[runbook] = true
		delete(unused, runbook)
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("alert %s says too little", a.Alert)
		}
		if !regexp.MustCompile(`\balertname: ` + a.Alert + `\b`).MatchString(tests) {
			t.Errorf("alert %s has no test in godwit.rules.test.yaml", a.Alert)
		}
	}
	for runbook := range unused {
		t.Errorf("%s belongs to no alert", runbook)
	}
	if headings == 0 {
		t.Error("the section Alerts has no headings")
	}
	checkFlags(t, "docs/operations.md, Alerts", section, regexp.MustCompile("`--([a-z][a-z-]+)"))
}

// anchor is what links to a heading of a Markdown page end with.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// foreign are variables with our prefix that are no settings of the server.
var foreign = []string{
	"GODWIT_BALANCER", "GODWIT_NODE_A", "GODWIT_NODE_B", "GODWIT_NODE_C", // balancer/haproxy.cfg
	"GODWIT_VERSION",        // tag of the image in compose/compose.yaml
	"GODWIT_CLUSTER_INSIDE", // scripts/cluster for itself
}

func TestVariablesAreSettings(t *testing.T) {
	places := []string{"../scripts/cluster"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, ".go") {
			places = append(places, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\bGODWIT_[A-Z0-9_]*[A-Z0-9]`)
	count := 0
	for _, place := range places {
		for _, name := range variable.FindAllString(read(t, place), -1) {
			count++
			if !slices.Contains(foreign, name) && len(config.UnknownEnv([]string{name + "=x"})) > 0 {
				t.Errorf("%s: %s is no setting", place, name)
			}
		}
	}
	if count == 0 {
		t.Error("no variable found")
	}
}

// otherFlags are flags of other programs, and of commands that are no settings, in the files that name flags.
var otherFlags = []string{
	"detach", "wait", // docker compose
	"username", "dbname", "host", // pg_isready
	"namespace",             // kubectl
	"tenant-name", "scopes", // godwit keys create
	"live", // godwit health
}

func TestFlagsAreSettings(t *testing.T) {
	for _, pattern := range []string{
		"systemd/*", "compose/compose.yaml", "balancer/*", "grafana/*.json", "helm/godwit/*.yaml", "helm/godwit/ci/*.yaml", "helm/godwit/templates/*",
	} {
		for _, file := range files(t, pattern) {
			checkFlags(t, file, read(t, file), regexp.MustCompile(`(?:^|[\s"'(])--([a-z][a-z-]+)`))
		}
	}
}

func checkFlags(t *testing.T, place, text string, pattern *regexp.Regexp) {
	t.Helper()
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		isSetting := slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.Flag == m[1] })
		if !isSetting && !slices.Contains(otherFlags, m[1]) {
			t.Errorf("%s: --%s is no setting", place, m[1])
		}
	}
}

// A stop that is cut off leaves requests in flight without a record, and their deliveries are sent twice.
func TestStopsHaveTheTimeTheyNeed(t *testing.T) {
	const closing = 10 * time.Second // to record results and to close
	length := func(text string) time.Duration {
		t.Helper()
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var compose struct {
		Node struct {
			Grace string `yaml:"stop_grace_period"`
		} `yaml:"x-node"`
		Settings struct {
			Delay string `yaml:"GODWIT_STOP_DELAY"`
			Drain string `yaml:"GODWIT_DRAIN_TIMEOUT"`
		} `yaml:"x-settings"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "compose/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	if s := compose.Settings; length(compose.Node.Grace) < length(s.Delay)+length(s.Drain)+closing {
		t.Errorf("compose file: %s are too little for a delay of %s and a drain of %s", compose.Node.Grace, s.Delay, s.Drain)
	}
	grace := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)`).FindStringSubmatch(read(t, "systemd/godwit.service"))
	delay := regexp.MustCompile(`(?m)^#?GODWIT_STOP_DELAY=(\S+)`).FindStringSubmatch(read(t, "systemd/godwit.env"))
	if grace == nil || delay == nil {
		t.Fatal("systemd: the unit or its settings do not give the time of a stop")
	}
	if length(grace[1]) < length(delay[1])+time.Duration(config.Default().DrainTimeout)+closing {
		t.Errorf("systemd: %s are too little for a delay of %s and the drain", grace[1], delay[1])
	}
}

// The chart makes variables of the values under "settings", by the rule in templates/deployment.yaml.
func TestSettingsOfChartValues(t *testing.T) {
	count := 0
	for _, file := range files(t, "helm/godwit/ci/*.yaml") {
		var values struct{ Settings map[string]any }
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &values); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name := range values.Settings {
			count++
			variable := config.EnvPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
			if len(config.UnknownEnv([]string{variable + "=x"})) > 0 {
				t.Errorf("%s: settings: %s is no setting", file, name)
			}
		}
	}
	if count == 0 {
		t.Error("no values found")
	}
}
