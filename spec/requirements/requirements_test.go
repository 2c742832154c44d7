package requirements

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

func TestEmbeddedTablesAreWhole(t *testing.T) {
	tables, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"EDS": 190, "IKH": 52, "OJS": 145, "IDS": 98, "CCW": 224}
	for _, d := range tables.Documents {
		if len(d.Rows) != want[d.Name] {
			t.Errorf("%s has %d rows, want %d", d.Name, len(d.Rows), want[d.Name])
		}
		for _, r := range d.Rows {
			if !slices.Contains(levels, r.Level) {
				t.Errorf("%s: level %q", r.ID, r.Level)
			}
			if r.Role == "" {
				t.Errorf("%s: no role", r.ID)
			}
			if n := utf8.RuneCountInString(r.Statement); n == 0 || n > 110 {
				t.Errorf("%s: statement has %d characters", r.ID, n)
			}
		}
	}
}

var levels = []string{
	"MUST", "MUST NOT", "REQUIRED", "SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED", "MAY",
	"DEF", "EXAMPLE", "REF", "SURVEY",
}

func TestBindingLevels(t *testing.T) {
	for level, want := range map[string]bool{
		"MUST": true, "MUST NOT": true, "REQUIRED": true, "SHALL": true,
		"SHOULD": false, "SHOULD NOT": false, "RECOMMENDED": false, "MAY": false, "DEF": false, "": false,
	} {
		if got := (Row{Level: level}).Binding(); got != want {
			t.Errorf("Binding of %q is %v", level, got)
		}
	}
}

func TestReadRefusesFaultyTables(t *testing.T) {
	sound := fstest.MapFS{
		"eds.csv":            file("id,level,role,statement", "EDS-A-1,MUST,sender,one", "EDS-A-2,MAY,sender,two"),
		"ikh.csv":            file("id,level,role,statement"),
		"ojs.csv":            file("id,level,role,statement"),
		"ids.csv":            file("id,level,role,statement"),
		"ccw.csv":            file("id,level,role,statement"),
		"not-applicable.csv": file("id,reason", "EDS-A-2,no such part"),
		"covered.csv":        file("id", "EDS-A-1"),
	}
	if _, err := Read(sound); err != nil {
		t.Fatalf("sound tables refused: %v", err)
	}
	for name, c := range map[string]struct {
		file    string
		content *fstest.MapFile
		want    string
	}{
		"header":          {"eds.csv", file("id,role,level,statement"), "header"},
		"empty file":      {"eds.csv", file(), "header"},
		"columns":         {"eds.csv", file("id,level,role,statement", "EDS-A-1,MUST"), "fields"},
		"twice":           {"eds.csv", file("id,level,role,statement", "EDS-A-1,M,r,s", "EDS-A-1,M,r,s"), "twice"},
		"foreign id":      {"ikh.csv", file("id,level,role,statement", "EDS-A-9,M,r,s"), "not an id of IKH"},
		"unknown na":      {"not-applicable.csv", file("id,reason", "EDS-A-9,why"), "unknown id"},
		"na without why":  {"not-applicable.csv", file("id,reason", `EDS-A-1," "`), "no reason"},
		"na twice":        {"not-applicable.csv", file("id,reason", "EDS-A-1,a", "EDS-A-1,b"), "twice"},
		"unknown covered": {"covered.csv", file("id", "EDS-A-9"), "unknown id"},
		"covered twice":   {"covered.csv", file("id", "EDS-A-1", "EDS-A-1"), "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := maps.Clone(sound)
			folder[c.file] = c.content
			if _, err := Read(folder); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
}

func file(lines ...string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(strings.Join(lines, "\n"))}
}
