package compat

import (
	"cmp"
	"slices"
)

// A Direction says which documents must stay valid by which version.
type Direction string

// The directions.
const (
	None     Direction = "none"
	Backward Direction = "backward" // documents of the old version are valid by the new one: its readers understand stored events
	Forward  Direction = "forward"  // documents of the new version are valid by the old one: its readers understand new events
	Full     Direction = "full"     // both
)

// Directions lists the directions.
var Directions = []Direction{None, Backward, Forward, Full}

// A Fault is a place where two versions are not compatible.
type Fault struct {
	Place     string    // JSON pointer into the new version, or into the old one if the new one has no such place
	Direction Direction // Backward or Forward
	Detail    string
}

// maxFaults bounds the faults of a comparison.
const maxFaults = 20

// Compare returns the places where the new version of a schema is not compatible with the old one. Both are decoded schemas that
// compile.
func Compare(before, after any, d Direction) []Fault {
	var faults []Fault
	if d == Backward || d == Full {
		faults = append(faults, run(before, after, Backward)...)
	}
	if d == Forward || d == Full {
		faults = append(faults, run(after, before, Forward)...)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Place, b.Place) })
	return faults[:min(len(faults), maxFaults)]
}

// run finds the places where a document of the narrow schema may be invalid by the wide one.
func run(narrow, wide any, d Direction) []Fault {
	i := &inclusion{narrow: narrow, wide: wide, direction: d}
	i.schema(narrow, wide, "")
	return i.faults
}
