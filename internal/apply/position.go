package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Position is a place in a file.
type Position struct {
	File         string
	Line, Column int // from 1; 0: the whole file
}

func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Fault is a mistake in a file, or an object that could not be written.
type Fault struct {
	At   Position
	Text string
}

func (f *Fault) Error() string {
	if f.At.File == "" {
		return f.Text
	}
	return f.At.String() + ": " + f.Text
}

// Faults are all mistakes that were found.
type Faults []*Fault

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

func (fs *Faults) add(at Position, format string, args ...any) {
	*fs = append(*fs, &Fault{At: at, Text: fmt.Sprintf(format, args...)})
}

// err returns the faults in the order of the files, or nil if there are none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	slices.SortStableFunc(fs, func(a, b *Fault) int {
		return cmp.Or(strings.Compare(a.At.File, b.At.File), a.At.Line-b.At.Line, a.At.Column-b.At.Column)
	})
	return fs
}
