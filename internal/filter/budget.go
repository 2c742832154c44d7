package filter

// MaxSteps is how much one filter may look at of one event. A step is about the comparison of one value, or of 64 bytes of a text. An event of the
// largest size passes the filters of everyday use; what needs more would keep a node from accepting other events.
const MaxSteps = 2_000_000

// A run counts the steps of one match.
type run struct{ left int }

// spend takes steps, and reports whether there were enough. The result of a run that is exhausted has no meaning: only the root asks for it, so that no
// negation makes a match of it.
func (r *run) spend(steps int) bool {
	r.left -= min(steps, MaxSteps+1)
	return r.left >= 0
}

func (r *run) exhausted() bool { return r.left < 0 }

// steps returns what the test of a value costs.
func (n *condition) steps(value any) int {
	steps := 1 + n.operands/8
	switch v := value.(type) {
	case string:
		steps += len(v) / 64 * max(n.operands, n.program, 1)
		if n.program > 0 {
			steps += len(v) % 64 * n.program / 64
		}
	case []any:
		steps += len(v) // a list of the filter is looked for in it
	}
	return steps
}
