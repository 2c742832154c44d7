package faults

import (
	"slices"
	"testing"
	"time"
)

// at makes a span of seconds.
func at(from, to int) Span {
	return Span{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
}

func post(key string, status int, s Span) Post {
	return Post{Span: s, Key: key, Type: "faults.plain", Node: "a", Status: status, Event: "event of " + key}
}

func arrival(key, node string, s Span) Arrival {
	return Arrival{Span: s, Endpoint: "e", Key: key, Node: node, Status: 200}
}

func TestDelivered(t *testing.T) {
	created := Change{at(0, 1), "e", Create}
	for name, c := range map[string]struct {
		posts    []Post
		changes  []Change
		arrivals []Arrival
		losses   int
	}{
		"arrived":                {[]Post{post("k", 202, at(2, 3))}, []Change{created}, []Arrival{arrival("k", "a", at(3, 4))}, 0},
		"lost":                   {[]Post{post("k", 202, at(2, 3))}, []Change{created}, nil, 1},
		"only refused":           {[]Post{post("k", 503, at(2, 3))}, []Change{created}, nil, 0},
		"refused, then accepted": {[]Post{post("k", 503, at(2, 3)), post("k", 202, at(4, 5))}, []Change{created}, nil, 1},
		"answered with an error": {[]Post{post("k", 202, at(2, 3))}, []Change{created}, []Arrival{{at(3, 4), "e", "k", "a", 503}}, 1},
		"created meanwhile":      {[]Post{post("k", 202, at(0, 3))}, []Change{created}, nil, 0},
		"deleted later":          {[]Post{post("k", 202, at(2, 3))}, []Change{created, {at(8, 9), "e", Delete}}, nil, 0},
		"paused, then resumed":   {[]Post{post("k", 202, at(5, 6))}, []Change{created, {at(2, 3), "e", Pause}, {at(8, 9), "e", Resume}}, nil, 1},
		"other patterns":         {[]Post{post("k", 202, at(5, 6))}, []Change{created, {at(2, 3), "e", Refuse}}, nil, 0},
	} {
		h := &History{Rules: []Rule{{Endpoint: "e", Types: "faults."}}, Posts: c.posts, Changes: c.changes, Arrivals: c.arrivals}
		if losses, _ := h.Delivered(); len(losses) != c.losses {
			t.Errorf("%s: %v", name, losses)
		}
	}
}

func TestUnwanted(t *testing.T) {
	created := Change{at(0, 1), "e", Create}
	for name, c := range map[string]struct {
		changes  []Change
		arrives  Span
		unwanted int
	}{
		"wanted":                       {[]Change{created}, at(12, 13), 0},
		"deleted before":               {[]Change{created, {at(8, 9), "e", Delete}}, at(12, 13), 1},
		"deleted meanwhile":            {[]Change{created, {at(8, 11), "e", Delete}}, at(12, 13), 0},
		"created after":                {[]Change{{at(12, 13), "e", Create}}, at(14, 15), 1},
		"paused before":                {[]Change{created, {at(8, 9), "e", Pause}}, at(12, 13), 1},
		"paused before, resumed since": {[]Change{created, {at(8, 9), "e", Pause}, {at(11, 14), "e", Resume}}, at(12, 13), 0},
		"other patterns before":        {[]Change{created, {at(8, 9), "e", Refuse}}, at(12, 13), 1},
		"wanted again":                 {[]Change{created, {at(6, 7), "e", Refuse}, {at(8, 9), "e", Want}}, at(12, 13), 0},
	} {
		h := &History{Posts: []Post{post("k", 202, at(10, 11))}, Changes: c.changes, Arrivals: []Arrival{arrival("k", "a", c.arrives)}}
		if unwanted := h.Unwanted(); len(unwanted) != c.unwanted {
			t.Errorf("%s: %v", name, unwanted)
		}
	}
}

func TestDuplicates(t *testing.T) {
	twice := []Arrival{arrival("k", "a", at(1, 2)), arrival("k", "b", at(9, 10))}
	for name, c := range map[string]struct {
		faults   []Fault
		arrivals []Arrival
		fault    []string
	}{
		"once":                 {nil, twice[:1], nil},
		"twice":                {nil, twice, []string{""}},
		"a retry":              {nil, []Arrival{{at(1, 2), "e", "k", "a", 503}, twice[1]}, nil},
		"its node died":        {[]Fault{{at(3, 5), Kill, "a", Torn}}, twice, []string{Kill}},
		"another node died":    {[]Fault{{at(3, 5), Kill, "b", Torn}}, twice, []string{""}},
		"it died before":       {[]Fault{{at(0, 0), Kill, "a", Torn}}, twice, []string{""}},
		"it left":              {[]Fault{{at(3, 5), "leave", "a", Away}}, twice, []string{""}},
		"the database crashed": {[]Fault{{at(3, 5), "crash", "", Torn}}, twice, []string{"crash"}},
		"the second woke up":   {[]Fault{{at(3, 9), Freeze, "b", Torn}}, twice, []string{Freeze}},
		"the second was slow":  {[]Fault{{at(3, 8), Freeze, "b", Torn}}, twice, []string{Freeze}},
		"the second had slept": {[]Fault{{at(3, 6), Freeze, "b", Torn}}, twice, []string{""}},
		"another one woke up":  {[]Fault{{at(3, 9), Freeze, "c", Torn}}, twice, []string{""}},
		"an unknown woke up":   {[]Fault{{at(3, 9), Freeze, "b", Torn}}, []Arrival{twice[0], arrival("k", "", at(9, 10))}, []string{Freeze}},
		"its node is unknown":  {[]Fault{{at(3, 5), Kill, "b", Torn}}, []Arrival{arrival("k", "", at(1, 2)), twice[1]}, []string{Kill}},
	} {
		h := &History{Arrivals: c.arrivals, Faults: c.faults}
		h.Rules = []Rule{{Endpoint: "other", Impatient: true}}
		h.Arrivals = append(h.Arrivals, Arrival{at(1, 2), "other", "k", "a", 200}, Arrival{at(2, 3), "other", "k", "a", 200})
		var faults []string
		for _, d := range h.Duplicates() {
			faults = append(faults, d.Kind())
		}
		if !slices.Equal(faults, c.fault) {
			t.Errorf("%s: %q", name, faults)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		faults  []Fault
		refused int
	}{
		"accepted":         {202, nil, 0},
		"conflict":         {422, nil, 0},
		"refused":          {503, nil, 1},
		"no answer":        {unknown, nil, 1},
		"its node died":    {unknown, []Fault{{at(3, 5), Kill, "a", Torn}}, 0},
		"another one died": {unknown, []Fault{{at(3, 5), Kill, "b", Torn}}, 1},
		"its node left":    {503, []Fault{{at(3, 5), "leave", "a", Away}}, 0},
		"a snapshot":       {503, []Fault{{at(3, 5), "snapshot", "", None}}, 1},
	} {
		h := &History{Posts: []Post{post("k", c.status, at(4, 6))}, Faults: c.faults}
		if refused := h.Refused(); len(refused) != c.refused {
			t.Errorf("%s: %v", name, refused)
		}
	}
}

func TestFailed(t *testing.T) {
	for name, c := range map[string]struct {
		faults []Fault
		failed int
	}{
		"without a fault":       {nil, 1},
		"a node died":           {[]Fault{{at(3, 5), Kill, "a", Torn}}, 1},
		"the only node died":    {[]Fault{{at(3, 5), Kill, "", Torn}}, 0},
		"a node left":           {[]Fault{{at(3, 5), "leave", "a", Away}}, 1},
		"a rolling restart":     {[]Fault{{at(3, 5), "rolling", "", Away}}, 1},
		"a node was cut off":    {[]Fault{{at(3, 5), "cut", "a", Torn}}, 0},
		"the database was away": {[]Fault{{at(3, 5), "failover", "", Torn}}, 0},
	} {
		h := &History{Failures: []Failure{{at(4, 6), "POST /", 502, "why"}}, Faults: c.faults}
		if failed := h.Failed(); len(failed) != c.failed {
			t.Errorf("%s: %v", name, failed)
		}
	}
}

// A post is told to come back while another with its key is under way, and only then.
func TestRefusedAsBusy(t *testing.T) {
	for _, c := range []struct {
		twin    int // status of the other
		span    Span
		refused int
	}{{202, at(4, 6), 0}, {202, at(6, 7), 1}, {503, at(6, 7), 0}, {unknown, at(6, 7), 0}, {503, at(0, 0), 1}} {
		h := &History{Posts: []Post{post("k", c.twin, at(1, 5)), post("k", 409, c.span)}, Faults: []Fault{{at(1, 5), Kill, "a", Torn}}}
		if c.twin == 202 {
			h.Faults = nil
		}
		if refused := h.Refused(); len(refused) != c.refused {
			t.Errorf("after %d, %v: %v", c.twin, c.span, refused)
		}
	}
}

// A balancer goes on with other nodes when one leaves.
func TestRefusedByTheBalancer(t *testing.T) {
	p := post("k", 503, at(4, 6))
	p.Node = balancer
	for harm, refused := range map[Harm]int{None: 1, Away: 1, Torn: 0} {
		h := &History{Posts: []Post{p}, Faults: []Fault{{at(3, 5), "some", "a", harm}}}
		if list := h.Refused(); len(list) != refused {
			t.Errorf("harm %d: %v", harm, list)
		}
	}
}

func TestFlat(t *testing.T) {
	for name, c := range map[string]struct {
		megabytes func(i int) int64
		flat      bool
	}{
		"constant":       {func(int) int64 { return 50 }, true},
		"fills caches":   {func(i int) int64 { return min(50+10*int64(i), 100) }, true},
		"grows":          {func(i int) int64 { return 50 + 10*int64(i) }, false},
		"a short moment": {func(i int) int64 { return 50 + 1000*int64(i/29) }, true},
	} {
		h := &History{}
		for i := range 30 {
			h.Memories = append(h.Memories, Memory{Node: "a", Bytes: c.megabytes(i) << 20})
		}
		if violations := h.Flat(); (len(violations) == 0) != c.flat {
			t.Errorf("%s: %v", name, violations)
		}
	}
}

func TestPaced(t *testing.T) {
	burst := func(n int, node string) (list []Arrival) {
		for range n {
			list = append(list, arrival("k", node, at(10, 10)))
		}
		return list
	}
	frozen := []Fault{{at(3, 10), Freeze, "b", Torn}}
	for name, c := range map[string]struct {
		rule     Rule
		faults   []Fault
		arrivals []Arrival
		fails    bool
	}{
		"as many as seven seconds allow":  {Rule{Endpoint: "e", Count: 10, Per: time.Second}, nil, burst(70, "a"), false},
		"one more":                        {Rule{Endpoint: "e", Count: 10, Per: time.Second}, nil, burst(71, "a"), true},
		"as many as a minute allows":      {Rule{Endpoint: "e", Count: 10, Per: time.Minute}, nil, burst(10, "a"), false},
		"one more than a minute":          {Rule{Endpoint: "e", Count: 10, Per: time.Minute}, nil, burst(11, "a"), true},
		"one of them from a frozen node":  {Rule{Endpoint: "e", Count: 10, Per: time.Minute}, frozen, append(burst(10, "a"), burst(1, "b")...), false},
		"one of them from a healthy node": {Rule{Endpoint: "e", Count: 10, Per: time.Minute}, frozen, append(burst(10, "a"), burst(1, "c")...), true},
		"without limit":                   {Rule{Endpoint: "e"}, nil, burst(1000, "a"), false},
	} {
		h := &History{Rules: []Rule{c.rule}, Arrivals: c.arrivals, Faults: c.faults}
		if violations := h.Paced(); (len(violations) > 0) != c.fails {
			t.Errorf("%s: %v", name, violations)
		}
	}
}

func TestLinearisableKeys(t *testing.T) {
	answer := func(variant, status int, event string, s Span) Post {
		return Post{Span: s, Key: "k", Variant: variant, Status: status, Event: event}
	}
	for name, c := range map[string]struct {
		posts []Post
		holds bool
	}{
		"a repeat":                             {[]Post{answer(0, 202, "x", at(0, 1)), answer(0, 202, "x", at(2, 3))}, true},
		"a second event":                       {[]Post{answer(0, 202, "x", at(0, 1)), answer(0, 202, "y", at(2, 3))}, false},
		"a conflict":                           {[]Post{answer(0, 202, "x", at(0, 1)), answer(1, 422, "", at(2, 3))}, true},
		"another body is accepted":             {[]Post{answer(0, 202, "x", at(0, 1)), answer(1, 202, "x", at(2, 3))}, false},
		"a conflict with nothing":              {[]Post{answer(1, 422, "", at(0, 1)), answer(0, 202, "x", at(2, 3))}, false},
		"a conflict with a concurrent request": {[]Post{answer(1, 422, "", at(0, 3)), answer(0, 202, "x", at(2, 3))}, true},
		"an unknown one had its effect":        {[]Post{answer(0, unknown, "", at(0, 1)), answer(1, 422, "", at(2, 3))}, true},
		"an unknown one had none":              {[]Post{answer(0, 503, "", at(0, 1)), answer(1, 202, "x", at(2, 3))}, true},
		"a conflict with itself":               {[]Post{answer(0, unknown, "", at(0, 1)), answer(0, 422, "", at(2, 3))}, false},
	} {
		h := &History{Posts: c.posts}
		if violations := h.Linearisable(); (len(violations) == 0) != c.holds {
			t.Errorf("%s: %v", name, violations)
		}
	}
}

func TestLinearisableCommands(t *testing.T) {
	for name, c := range map[string]struct {
		commands []Command
		holds    bool
	}{
		"one result":   {[]Command{{at(0, 1), 1, 200, "x"}, {at(2, 3), 1, 200, "x"}}, true},
		"two results":  {[]Command{{at(0, 1), 1, 200, "x"}, {at(2, 3), 1, 200, "y"}}, false},
		"two commands": {[]Command{{at(0, 1), 1, 200, "x"}, {at(2, 3), 2, 200, "y"}}, true},
		"no answer":    {[]Command{{at(0, 1), 1, unknown, ""}, {at(2, 3), 1, 200, "x"}}, true},
	} {
		h := &History{Commands: c.commands}
		if violations := h.Linearisable(); (len(violations) == 0) != c.holds {
			t.Errorf("%s: %v", name, violations)
		}
	}
}

func TestLinearisableLeases(t *testing.T) {
	for name, c := range map[string]struct {
		reads []LeaseRead
		holds bool
	}{
		"taken over":             {[]LeaseRead{{at(0, 1), 7, "a", 1}, {at(2, 3), 7, "b", 2}}, true},
		"given up":               {[]LeaseRead{{at(0, 1), 7, "a", 1}, {at(2, 3), 7, "", 1}, {at(4, 5), 7, "b", 2}}, true},
		"two owners of an epoch": {[]LeaseRead{{at(0, 1), 7, "a", 1}, {at(2, 3), 7, "b", 1}}, false},
		"an epoch comes back":    {[]LeaseRead{{at(0, 1), 7, "b", 2}, {at(2, 3), 7, "a", 1}}, false},
		"read at the same time":  {[]LeaseRead{{at(0, 3), 7, "b", 2}, {at(1, 2), 7, "a", 1}}, true},
		"two shards":             {[]LeaseRead{{at(0, 1), 7, "b", 2}, {at(2, 3), 8, "a", 1}}, true},
	} {
		h := &History{Leases: c.reads}
		if violations := h.Linearisable(); (len(violations) == 0) != c.holds {
			t.Errorf("%s: %v", name, violations)
		}
	}
}
