package faults

import (
	"math"
	"sync"
	"time"
)

// A Span is the time of a request or a fault, since the start of the run by the steady clock of the test.
type Span struct{ From, To time.Duration }

// Meets reports whether the spans have a moment in common.
func (s Span) Meets(o Span) bool { return s.From <= o.To && o.From <= s.To }

// endless is the end of what has none yet.
const endless time.Duration = math.MaxInt64

// unknown is the status of a request without an answer: it had its effect, or will have it, or not.
const unknown = 0

// A Post is one request of a producer. Requests with the same key are repeats, or conflicts if their variant differs.
type Post struct {
	Span
	Key     string
	Variant int
	Type    string
	Node    string
	Status  int
	Event   string // its id
}

// What a change does to an endpoint.
const (
	Create = "create"
	Want   = "want"   // its patterns select the events
	Refuse = "refuse" // its patterns do not
	Pause  = "pause"
	Resume = "resume"
	Delete = "delete"
)

// A Change is one change of an endpoint, from the first request for it to the answer that says that it was done. An endpoint's
// changes follow one after another.
type Change struct {
	Span
	Endpoint string
	Kind     string
}

// An Arrival is a request that a receiver got.
type Arrival struct {
	Span
	Endpoint string
	Key      string
	Node     string // empty: not known
	Status   int    // the answer; unknown if the request was cut off
}

// A Command is one submission of a command.
type Command struct {
	Span
	N      int
	Status int
	Result string
}

// A LeaseRead is what a client of the database saw of a shard's lease.
type LeaseRead struct {
	Span
	Shard int
	Owner string
	Epoch int64
}

// A Harm is the worst that a fault may do to its node.
type Harm int

const (
	// None: the fault must go unnoticed.
	None Harm = iota
	// Away: the node may refuse requests, and must send nothing twice.
	Away
	// Torn: the node may refuse requests, and requests that it has sent may be sent again.
	Torn
)

// A Fault is one fault, from its injection until the cluster has recovered from it. Node is empty if it concerns all nodes.
type Fault struct {
	Span
	Kind string
	Node string
	Harm Harm
}

// balancer is the node of posts that the balancer took. It heeds what /readyz says, and gives the posts of a dead node to another one. So neither a node
// that stops nor one that is killed may make it fail, as long as there are others.
const balancer = "balancer"

// Does reports whether the fault may have done so much harm to the node in the span. An unknown node may be any.
func (f *Fault) Does(harm Harm, node string, s Span) bool {
	if node == balancer {
		if f.Kind == Kill && f.Node != "" {
			return false
		}
		harm, node = Torn, ""
	}
	return f.Harm >= harm && (f.Node == "" || node == "" || f.Node == node) && f.Meets(s)
}

// A Failure is a request through the balancer that was answered with an error of the server's, or not at all.
type Failure struct {
	Span
	Request string
	Status  int
	Detail  string // the start of the answer, or why there is none
}

// A Memory is the resident memory of a process.
type Memory struct {
	At      time.Duration
	Node    string
	Process int
	Bytes   int64
}

// A Rule of an endpoint that the checkers need.
type Rule struct {
	Endpoint string
	Types    string // of the events that it wants, as a prefix
	Count    int    // requests that may start within Per; 0: no limit
	Per      time.Duration
	// Impatient tells that nodes give requests to it up soon, perhaps at the moment of the answer, and rightly send them again.
	Impatient bool
}

// History is all that was seen of a run.
type History struct {
	start time.Time

	mu       sync.Mutex
	Rules    []Rule
	Posts    []Post
	Changes  []Change
	Arrivals []Arrival
	Commands []Command
	Leases   []LeaseRead
	Faults   []Fault
	Memories []Memory
	Failures []Failure
}

// NewHistory begins a history.
func NewHistory() *History { return &History{start: time.Now()} }

// Now is the time since the start.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// add appends to one of the lists.
func add[T any](h *History, list *[]T, item T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, item)
}

// open adds a fault that lasts until the returned function is called.
func (h *History) open(f Fault) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.Faults)
	f.From, f.To = h.Now(), endless
	h.Faults = append(h.Faults, f)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.Faults[i].To = h.Now()
	}
}

// Kinds of faults that checkers treat apart.
const (
	Kill   = "kill"
	Freeze = "freeze"
	Stall  = "stall" // the machine or its disk was busy for longer than a second
)
