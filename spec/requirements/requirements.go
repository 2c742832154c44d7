// Package requirements holds the rows that Godwit promises to meet: one CSV
// file for each of the five documents, a row per testable requirement.
//
//	eds.csv  Event and Webhook Delivery Semantics, draft -01
//	ikh.csv  The Idempotency-Key HTTP Header Field, draft -01
//	ojs.csv  Open Job Spec: Webhook Delivery 1.0.0-rc.1
//	ids.csv  RFC-WF-0010 Idempotency & Delivery Semantics 1.0.0
//	ccw.csv  CYBERCUBE Webhooks & External Integrations Standard v1
//
// Beside them lie not-applicable.csv (rows that cannot apply, each with its
// reason) and covered.csv (rows that a passing test has shown: the ratchet).
//
// The package only reads these files. Which test shows which row is the
// business of internal/trace; what is missing is counted by its tracetool.
package requirements

import (
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Names of the two lists that lie beside the documents.
const (
	CoveredFile       = "covered.csv"
	NotApplicableFile = "not-applicable.csv"
)

//go:embed *.csv
var files embed.FS

// Row is one testable requirement.
type Row struct {
	ID        string
	Level     string // the document's own word: MUST, SHOULD NOT, DEF, ...
	Role      string // who has to meet it: sender, server(API), ...
	Statement string // in our words; the document decides
}

// Binding reports whether the row's level leaves no choice.
func (r Row) Binding() bool {
	switch r.Level {
	case "MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT":
		return true
	}
	return false
}

// Document is one source with its rows in the order of the text.
type Document struct {
	Name  string // prefix of its ids: EDS
	Title string
	Rows  []Row
}

// Tables is all that the folder holds.
type Tables struct {
	Documents     []Document
	NotApplicable map[string]string // id → reason
	Covered       []string          // ids once shown by a passing test
	ids           map[string]bool
}

// Known reports whether id is a row of one of the documents.
func (t *Tables) Known(id string) bool { return t.ids[id] }

// Embedded returns the tables compiled into the binary, so that it works from
// any working directory.
var Embedded = sync.OnceValues(func() (*Tables, error) { return Read(files) })

// Read reads the tables of a folder. It refuses ids that occur twice, that
// bear another document's prefix, or that a list names but no document has.
func Read(folder fs.FS) (*Tables, error) {
	t := &Tables{NotApplicable: map[string]string{}, ids: map[string]bool{}}
	for _, d := range []Document{
		{Name: "EDS", Title: "Event and Webhook Delivery Semantics, draft -01"},
		{Name: "IKH", Title: "The Idempotency-Key HTTP Header Field, draft -01"},
		{Name: "OJS", Title: "Open Job Spec: Webhook Delivery 1.0.0-rc.1"},
		{Name: "IDS", Title: "RFC-WF-0010 Idempotency & Delivery Semantics 1.0.0"},
		{Name: "CCW", Title: "CYBERCUBE Webhooks & External Integrations Standard v1"},
	} {
		if err := t.readDocument(folder, &d); err != nil {
			return nil, err
		}
		t.Documents = append(t.Documents, d)
	}
	if err := errors.Join(t.readNotApplicable(folder), t.readCovered(folder)); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tables) readDocument(folder fs.FS, d *Document) error {
	name := strings.ToLower(d.Name) + ".csv"
	records, err := records(folder, name, "id", "level", "role", "statement")
	if err != nil {
		return err
	}
	for _, r := range records {
		row := Row{ID: r[0], Level: r[1], Role: r[2], Statement: r[3]}
		switch {
		case !strings.HasPrefix(row.ID, d.Name+"-"):
			return fmt.Errorf("read %s: %q is not an id of %s", name, row.ID, d.Name)
		case t.ids[row.ID]:
			return fmt.Errorf("read %s: %s occurs twice", name, row.ID)
		}
		t.ids[row.ID] = true
		d.Rows = append(d.Rows, row)
	}
	return nil
}

func (t *Tables) readNotApplicable(folder fs.FS) error {
	records, err := records(folder, NotApplicableFile, "id", "reason")
	if err != nil {
		return err
	}
	for _, r := range records {
		id, reason := r[0], r[1]
		switch _, twice := t.NotApplicable[id]; {
		case !t.ids[id]:
			return fmt.Errorf("read %s: unknown id %q", NotApplicableFile, id)
		case twice:
			return fmt.Errorf("read %s: %s occurs twice", NotApplicableFile, id)
		case strings.TrimSpace(reason) == "":
			return fmt.Errorf("read %s: %s has no reason", NotApplicableFile, id)
		}
		t.NotApplicable[id] = reason
	}
	return nil
}

func (t *Tables) readCovered(folder fs.FS) error {
	records, err := records(folder, CoveredFile, "id")
	if err != nil {
		return err
	}
	for _, r := range records {
		switch id := r[0]; {
		case !t.ids[id]:
			return fmt.Errorf("read %s: unknown id %q", CoveredFile, id)
		case slices.Contains(t.Covered, id):
			return fmt.Errorf("read %s: %s occurs twice", CoveredFile, id)
		default:
			t.Covered = append(t.Covered, id)
		}
	}
	return nil
}

// records reads a CSV file whose first line is the given header.
func records(folder fs.FS, name string, header ...string) ([][]string, error) {
	f, err := folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open requirements: %w", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = len(header)
	all, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(all) == 0 || !slices.Equal(all[0], header) {
		return nil, fmt.Errorf("read %s: want header %s", name, strings.Join(header, ","))
	}
	return all[1:], nil
}
