// Command tracetool reports which requirement rows the tests have shown.
//
//	make test ─► .cache/trace/*.claims, passed ─┐
//	spec/requirements/*.csv ────────────────────┴► states ─► table on the terminal
//	                                                  ├────► docs/conformance.md
//	                                                  └────► exit 1 with the reasons, if something was lost
//
// It reads a finished run and runs no test itself, so that the suite runs once for all checks. It fails, naming the rows, if a
// row in covered.csv is no longer claimed by a passing test, a row is both claimed and listed as not applicable, an id is
// unknown, or the run did not pass.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/spec/requirements"
)

// passedFile is written to the run's directory by `make test` when every test passed.
const passedFile = "passed"

// options holds the command line.
type options struct {
	run          string // directory of the finished run
	requirements string // folder of the tables
	report       string // the page to write or to check
	check        bool   // compare the page, write nothing
	record       bool   // add the rows covered now to covered.csv
	prune        bool   // with record: drop the rows no longer covered
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", ".cache/trace", "`directory` of a finished test run")
	flag.StringVar(&o.requirements, "requirements", "spec/requirements", "`folder` of the requirement tables")
	flag.StringVar(&o.report, "report", "docs/conformance.md", "`page` to write")
	flag.BoolVar(&o.check, "check", false, "write nothing, fail if the page is out of date")
	flag.BoolVar(&o.record, "record", false, "add the rows covered now to "+requirements.CoveredFile)
	flag.BoolVar(&o.prune, "prune", false, "with -record: also drop the rows no longer covered")
	flag.Parse()
	if err := run(o, os.Stdout, os.Stderr); err != nil {
		os.Exit(1)
	}
}

// run prints problems on stderr and the result on stdout, which always ends with a line for each document.
func run(o options, stdout, stderr io.Writer) error {
	tables, err := requirements.Read(os.DirFS(o.requirements))
	if err != nil {
		fmt.Fprintln(stderr, "trace:", err)
		return err
	}
	claims, err := trace.ReadClaims(o.run)
	if err != nil {
		fmt.Fprintln(stderr, "trace:", err, "(run `make test` first)")
		return err
	}
	c := newCoverage(tables, claims)
	problems := append(verdict(o.run), c.contradictions()...)
	if o.record && len(problems) == 0 {
		problems = append(problems, record(o, c, tables)...)
	}
	problems = append(problems, c.lost(tables.Covered)...)
	if len(problems) == 0 {
		problems = append(problems, publish(o, markdown(c))...)
	}
	printTable(stdout, c)
	if n := len(c.unrecorded(tables.Covered)); n > 0 {
		fmt.Fprintf(stdout, "\n%d covered rows are not recorded yet: make trace-record\n", n)
	}
	for _, p := range problems {
		fmt.Fprintln(stderr, "trace:", p)
	}
	fmt.Fprintln(stdout)
	printSummary(stdout, c)
	return errors.Join(problems...)
}

// verdict is a problem if the run did not pass.
func verdict(dir string) []error {
	_, err := os.Stat(filepath.Join(dir, passedFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []error{fmt.Errorf("the test run in %s did not pass", dir)}
	case err != nil:
		return []error{fmt.Errorf("read verdict: %w", err)}
	}
	return nil
}

// publish writes the page, or only compares it.
func publish(o options, page []byte) []error {
	if !o.check {
		if err := os.WriteFile(o.report, page, 0o666); err != nil {
			return []error{fmt.Errorf("write report: %w", err)}
		}
		return nil
	}
	old, err := os.ReadFile(o.report)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []error{fmt.Errorf("read report: %w", err)}
	}
	if line, differs := firstDifference(old, page); differs {
		return []error{fmt.Errorf("%s:%d is out of date: run `make trace` and commit it", o.report, line)}
	}
	return nil
}

// record updates covered.csv and tables.Covered.
func record(o options, c *coverage, tables *requirements.Tables) []error {
	keep := tables.Covered
	if o.prune {
		keep = nil
	}
	tables.Covered = c.recorded(keep)
	name := filepath.Join(o.requirements, requirements.CoveredFile)
	if err := os.WriteFile(name, coveredFile(tables.Covered), 0o666); err != nil {
		return []error{fmt.Errorf("record covered rows: %w", err)}
	}
	return nil
}
