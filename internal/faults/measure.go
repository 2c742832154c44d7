package faults

import (
	"slices"
	"time"
)

// HandOvers are the times from the kill of a node until each endpoint that it had delivered to last got a request again: of another node, or of
// the node itself once it may have been started again, which is a lease later at the earliest. Endpoints that may have nothing to get are left out.
func (h *History) HandOvers(lease time.Duration) (times []time.Duration) {
	steady := h.steady()
	for _, f := range h.Faults {
		if f.Kind != Kill {
			continue
		}
		last, next := map[string]Arrival{}, map[string]Arrival{}
		for _, a := range h.Arrivals {
			switch known, ok := next[a.Endpoint]; {
			case a.From <= f.From && a.From > last[a.Endpoint].From:
				last[a.Endpoint] = a
			case a.From > f.From && (a.Node != "" && a.Node != f.Node || a.From > f.From+lease) && (!ok || a.From < known.From):
				next[a.Endpoint] = a
			}
		}
		for endpoint, a := range last {
			if n, ok := next[endpoint]; ok && a.Node == f.Node && steady[endpoint] {
				times = append(times, n.From-f.From)
			}
		}
	}
	slices.Sort(times)
	return times
}

// steady tells which endpoints wanted events all the time since they were created, as fast as they come.
func (h *History) steady() map[string]bool {
	steady := map[string]bool{}
	for _, r := range h.Rules {
		steady[r.Endpoint] = r.Count == 0 && !r.Impatient
	}
	for _, c := range h.Changes {
		if c.Kind != Create {
			steady[c.Endpoint] = false
		}
	}
	return steady
}

// Resident tells what all nodes' processes had in memory: the median in the first and in the last tenth of the run, and the most that one had.
func (h *History) Resident() (first, last, most int64) {
	if len(h.Memories) == 0 {
		return 0, 0, 0
	}
	end := h.Memories[len(h.Memories)-1].At
	part := max(end/10, 2*time.Second)
	var early, late []int64
	for _, m := range h.Memories {
		most = max(most, m.Bytes)
		if m.At <= part {
			early = append(early, m.Bytes)
		}
		if m.At >= end-part {
			late = append(late, m.Bytes)
		}
	}
	return median(early), median(late), most
}

func median(sizes []int64) int64 {
	if len(sizes) == 0 {
		return 0
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2]
}
