package faults

import (
	"slices"
	"testing"
	"time"
)

func TestHandOvers(t *testing.T) {
	created := Change{at(0, 1), "e", Create}
	before := []Arrival{arrival("1", "a", at(1, 1)), arrival("2", "a", at(4, 4)), {at(4, 4), "other", "1", "b", 200}, {at(6, 6), "other", "2", "b", 200}}
	for name, c := range map[string]struct {
		rule    Rule
		changes []Change
		after   []Arrival
		times   []time.Duration
	}{
		"another node goes on":         {Rule{Endpoint: "e"}, []Change{created}, []Arrival{arrival("3", "b", at(9, 9)), arrival("4", "b", at(10, 10))}, []time.Duration{4 * time.Second}},
		"the same, started again":      {Rule{Endpoint: "e"}, []Change{created}, []Arrival{arrival("3", "a", at(11, 11)), arrival("4", "b", at(19, 19))}, []time.Duration{6 * time.Second}},
		"the dying process does not":   {Rule{Endpoint: "e"}, []Change{created}, []Arrival{arrival("3", "a", at(6, 6)), arrival("4", "b", at(9, 9))}, []time.Duration{4 * time.Second}},
		"an endpoint that was paused":  {Rule{Endpoint: "e"}, []Change{created, {at(8, 9), "e", Pause}}, []Arrival{arrival("3", "b", at(30, 30))}, nil},
		"an endpoint that has a limit": {Rule{Endpoint: "e", Count: 1, Per: time.Minute}, []Change{created}, []Arrival{arrival("3", "b", at(30, 30))}, nil},
	} {
		h := &History{
			Rules: []Rule{c.rule, {Endpoint: "other"}}, Changes: c.changes, Faults: []Fault{{at(5, 8), Kill, "a", Torn}}, Arrivals: slices.Concat(before, c.after),
		}
		if times := h.HandOvers(5 * time.Second); !slices.Equal(times, c.times) {
			t.Errorf("%s: %v", name, times)
		}
	}
}

func TestResident(t *testing.T) {
	h := &History{}
	if first, last, most := h.Resident(); first != 0 || last != 0 || most != 0 {
		t.Errorf("of nothing: %d, %d, %d", first, last, most)
	}
	for i := range 100 {
		h.Memories = append(h.Memories, Memory{At: time.Duration(i) * time.Second, Bytes: int64(i)})
	}
	h.Memories[50].Bytes = 1000
	if first, last, most := h.Resident(); first != 5 || last != 95 || most != 1000 {
		t.Errorf("median at first %d, at last %d, at most %d", first, last, most)
	}
}
