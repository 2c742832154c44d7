package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printTable prints the counts of each document by level.
func printTable(w io.Writer, c *coverage) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "document\tlevel\tcovered\tn/a\topen")
	for _, d := range c.tables.Documents {
		for _, l := range c.levels(d) {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\n", d.Name, l.name, l.covered, l.notApplicable, l.open)
		}
	}
	t.Flush()
}

// printSummary prints the line for each document that other programs parse.
func printSummary(w io.Writer, c *coverage) {
	for _, d := range c.tables.Documents {
		n := c.count(d.Rows)
		fmt.Fprintf(w, "%s covered=%d na=%d open=%d open-must=%d\n", d.Name, n.covered, n.notApplicable, n.open, n.openMust)
	}
}

// markdown is the conformance page. Equal test results give an equal page, so that its diff shows only changes.
func markdown(c *coverage) []byte {
	var b bytes.Buffer
	b.WriteString(`# Conformance

Which requirement of the five documents is shown by which test. Written by ` + "`make trace`" + ` from the tests
that ran and passed; do not edit. A row is **covered** when a passing test claims it, **n/a** with the reason
when it cannot apply, and **open** otherwise. Statements are ours; the documents decide.

| document | rows | covered | n/a | open | open MUST |
| --- | --: | --: | --: | --: | --: |
`)
	for _, d := range c.tables.Documents {
		n := c.count(d.Rows)
		fmt.Fprintf(&b, "| [%s](#%s) %s | %d | %d | %d | %d | %d |\n",
			d.Name, strings.ToLower(d.Name), cell(d.Title), n.rows(), n.covered, n.notApplicable, n.open, n.openMust)
	}
	for _, d := range c.tables.Documents {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", d.Name, d.Title)
		b.WriteString("| level | rows | covered | n/a | open |\n| --- | --: | --: | --: | --: |\n")
		for _, l := range c.levels(d) {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", l.name, l.rows(), l.covered, l.notApplicable, l.open)
		}
		b.WriteString("\n| id | level | role | statement | state | shown by |\n| --- | --- | --- | --- | --- | --- |\n")
		for _, r := range d.Rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
				r.ID, r.Level, cell(r.Role), cell(r.Statement), c.state(r.ID), c.shownBy(r.ID))
		}
	}
	return b.Bytes()
}

// shownBy lists the tests of a covered row, or the reason of one that does not apply.
func (c *coverage) shownBy(id string) string {
	if c.state(id) == notApplicable {
		return cell(c.tables.NotApplicable[id])
	}
	var names []string
	for _, name := range c.tests[id] {
		names = append(names, "`"+cell(name)+"`")
	}
	return strings.Join(names, "<br>")
}

// cell keeps text inside its table cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// firstDifference is the number of the first line in which two pages differ.
func firstDifference(a, b []byte) (line int, differs bool) {
	if bytes.Equal(a, b) {
		return 0, false
	}
	as, bs := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(as), len(bs)) {
		if !bytes.Equal(as[i], bs[i]) {
			return i + 1, true
		}
	}
	return min(len(as), len(bs)), true
}
