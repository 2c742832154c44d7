package faultdisk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A Survival says what a cut leaves of the changes that were not synced.
type Survival string

// Survivals.
const (
	Nothing    Survival = "nothing"    // no change
	Everything Survival = "everything" // every change, as after kill -9
	Beginning  Survival = "beginning"  // the changes up to some moment
	Single     Survival = "single"     // any of the changes: they were reordered
	Torn       Survival = "torn"       // any sectors of the changes, with rubbish where a file became longer
)

// Survivals lists all.
var Survivals = []Survival{Nothing, Everything, Beginning, Single, Torn}

const sector = 512

// Survivors writes what survives the cut into an empty directory. Files that are not SQLite's are copied as they are.
func (d *Disk) Survivors(dir string, s Survival) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.survivors(dir, s)
}

// SurvivorsAtCut is Survivors for the function given to CutAt.
func (d *Disk) SurvivorsAtCut(dir string, s Survival) error { return d.survivors(dir, s) }

func (d *Disk) survivors(dir string, s Survival) error {
	last := d.sequence
	if s == Beginning {
		last = d.random.Int64N(d.sequence + 1)
	}
	survives := func(sequence int64) bool {
		switch s {
		case Nothing:
			return false
		case Everything:
			return true
		case Beginning:
			return sequence <= last
		default:
			return d.random.IntN(2) == 0
		}
	}
	entries := map[string]*node{}
	for name, n := range d.entries {
		entries[name] = n
	}
	for _, e := range d.pending {
		if survives(e.sequence) {
			e.apply(entries)
		}
	}
	for name, n := range entries {
		content := slices.Clone(n.durable)
		for _, c := range n.changes {
			switch {
			case s == Torn && c.data != nil:
				content = d.tear(content, &c)
			case survives(c.sequence):
				content = c.apply(content)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write survivors: %w", err)
		}
	}
	if err := d.rubbishIndex(dir, entries); err != nil {
		return err
	}
	return d.copyOthers(dir)
}

// tear keeps some sectors of a write.
func (d *Disk) tear(content []byte, c *change) []byte {
	for start := 0; start < len(c.data); {
		end := min(len(c.data), start+sector-int((c.off+int64(start))%sector))
		part := change{off: c.off + int64(start), data: c.data[start:end]}
		switch {
		case d.random.IntN(2) == 0:
			content = part.apply(content)
		case part.off >= int64(len(content)) && d.random.IntN(2) == 0: // the file became longer, its content was not written
			part.data = make([]byte, end-start)
			if d.random.IntN(2) == 0 {
				d.rubbish(part.data)
			}
			content = part.apply(content)
		}
		start = end
	}
	return content
}

func (d *Disk) rubbish(b []byte) {
	for i := range b {
		b[i] = byte(d.random.Uint32())
	}
}

// rubbishIndex sometimes leaves an index of the WAL that means nothing: it is never synced.
func (d *Disk) rubbishIndex(dir string, entries map[string]*node) error {
	for name := range entries {
		if filepath.Ext(name) != ".db" || d.random.IntN(2) == 0 {
			continue
		}
		index := make([]byte, 32<<10)
		d.rubbish(index)
		if err := os.WriteFile(filepath.Join(dir, name+"-shm"), index, 0o600); err != nil {
			return fmt.Errorf("write survivors: %w", err)
		}
	}
	return nil
}

func (d *Disk) copyOthers(dir string) error {
	list, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("read disk: %w", err)
	}
	for _, e := range list {
		if isDatabase(e.Name()) || e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(d.dir, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name()), content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", e.Name(), err)
		}
	}
	return nil
}
