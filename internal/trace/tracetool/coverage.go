package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/spec/requirements"
)

// state is the state of a row.
type state string

const (
	covered       state = "covered"
	notApplicable state = "n/a"
	open          state = "open"
)

// coverage joins the tables with the claims of one run.
type coverage struct {
	tables *requirements.Tables
	tests  map[string][]string // id → names of the tests that show it, sorted
}

func newCoverage(tables *requirements.Tables, claims []trace.Claim) *coverage {
	c := &coverage{tables: tables, tests: map[string][]string{}}
	for _, claim := range claims {
		c.tests[claim.ID] = append(c.tests[claim.ID], claim.Package+"."+claim.Test)
	}
	for id, names := range c.tests {
		slices.Sort(names)
		c.tests[id] = slices.Compact(names)
	}
	return c
}

func (c *coverage) state(id string) state {
	if len(c.tests[id]) > 0 {
		return covered
	}
	if c.tables.NotApplicable[id] != "" {
		return notApplicable
	}
	return open
}

// contradictions are claims that cannot be right.
func (c *coverage) contradictions() []error {
	var problems []error
	for _, id := range slices.Sorted(maps.Keys(c.tests)) {
		by := strings.Join(c.tests[id], ", ")
		switch {
		case !c.tables.Known(id):
			problems = append(problems, fmt.Errorf("%s is no known row, claimed by %s", id, by))
		case c.tables.NotApplicable[id] != "":
			problems = append(problems, fmt.Errorf("%s is listed as not applicable, yet claimed by %s", id, by))
		}
	}
	return problems
}

// lost names the recorded rows that no passing test claims any more.
func (c *coverage) lost(recorded []string) []error {
	var ids []string
	for _, id := range recorded {
		if len(c.tests[id]) == 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return []error{fmt.Errorf("covered before, and claimed by no passing test now: %s", strings.Join(ids, ", "))}
}

// unrecorded are the covered rows that covered.csv does not list yet.
func (c *coverage) unrecorded(recorded []string) []string {
	var ids []string
	for _, d := range c.tables.Documents {
		for _, r := range d.Rows {
			if c.state(r.ID) == covered && !slices.Contains(recorded, r.ID) {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

// recorded is keep with all rows covered now, in the order of the documents.
func (c *coverage) recorded(keep []string) []string {
	var ids []string
	for _, d := range c.tables.Documents {
		for _, r := range d.Rows {
			if c.state(r.ID) == covered || slices.Contains(keep, r.ID) {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

func coveredFile(ids []string) []byte {
	return []byte(strings.Join(append([]string{"id"}, ids...), "\n") + "\n")
}

// tally counts rows by state.
type tally struct {
	covered, notApplicable, open int
	openMust                     int // open rows whose level is binding
}

func (t tally) rows() int { return t.covered + t.notApplicable + t.open }

func (c *coverage) count(rows []requirements.Row) tally {
	var t tally
	for _, r := range rows {
		switch c.state(r.ID) {
		case covered:
			t.covered++
		case notApplicable:
			t.notApplicable++
		default:
			t.open++
			if r.Binding() {
				t.openMust++
			}
		}
	}
	return t
}

// levelOrder lists the levels from binding to informative; others follow.
var levelOrder = []string{
	"MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT",
	"SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED", "MAY", "OPTIONAL",
	"DEF", "REF", "EXAMPLE", "SURVEY",
}

// level is the tally of a document's rows of one level.
type level struct {
	name string
	tally
}

func (c *coverage) levels(d requirements.Document) []level {
	rows := map[string][]requirements.Row{}
	for _, r := range d.Rows {
		rows[r.Level] = append(rows[r.Level], r)
	}
	names := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var levels []level
	for _, name := range names {
		levels = append(levels, level{name, c.count(rows[name])})
	}
	return levels
}

func rank(level string) int {
	if i := slices.Index(levelOrder, level); i >= 0 {
		return i
	}
	return len(levelOrder)
}
