package commit

import "github.com/godwit-hq/godwit/internal/godwit"

// quantum is the credit, in rows, that a tenant gets at each turn.
const quantum = 64

// A queue holds operations by tenant and returns them by deficit round robin: at its turn a tenant gets quantum rows of credit
// and takes operations from the front of its line while its credit lasts. Operations of one tenant stay in order.
type queue[T any] struct {
	weigh  func(T) int // rows that an operation writes, at least 1
	lines  map[godwit.TenantID]*line[T]
	turns  []*line[T] // lines with operations; the first one has its turn
	spare  []*line[T] // empty lines, for reuse
	length int
}

// A line holds the queued operations of one tenant.
type line[T any] struct {
	tenant godwit.TenantID
	ops    []T
	credit int
}

func newQueue[T any](weigh func(T) int) *queue[T] {
	return &queue[T]{weigh: weigh, lines: map[godwit.TenantID]*line[T]{}}
}

func (q *queue[T]) line(tenant godwit.TenantID) *line[T] {
	l := q.lines[tenant]
	if l != nil {
		return l
	}
	if n := len(q.spare); n > 0 {
		l, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		l = &line[T]{}
	}
	l.tenant = tenant
	q.lines[tenant] = l
	q.turns = append(q.turns, l)
	return l
}

// push adds an operation at the end of the tenant's line.
func (q *queue[T]) push(tenant godwit.TenantID, op T) {
	l := q.line(tenant)
	l.ops = append(l.ops, op)
	q.length++
}

// pushFront puts operations back at the front of the tenant's line, in their order.
func (q *queue[T]) pushFront(tenant godwit.TenantID, ops ...T) {
	l := q.line(tenant)
	l.ops = append(append(make([]T, 0, len(ops)+len(l.ops)), ops...), l.ops...)
	q.length += len(ops)
}

// take removes up to maxOps operations with up to maxRows rows, fairly between tenants. It always takes the first operation,
// so an operation larger than maxRows is taken alone.
func (q *queue[T]) take(maxOps, maxRows int) []T {
	var taken []T
	for len(q.turns) > 0 {
		l := q.turns[0]
		l.credit += quantum
		for len(l.ops) > 0 {
			rows := q.weigh(l.ops[0])
			if len(taken) > 0 && (len(taken) >= maxOps || rows > maxRows) {
				return taken
			}
			if rows > l.credit && len(q.turns) > 1 {
				break
			}
			l.credit = max(l.credit-rows, 0) // rows that a tenant writes while it is alone create no debt
			maxRows -= rows
			taken = append(taken, l.pop())
			q.length--
		}
		q.endTurn(l)
	}
	return taken
}

func (l *line[T]) pop() T {
	var zero T
	op := l.ops[0]
	l.ops[0] = zero
	l.ops = l.ops[1:]
	return op
}

// endTurn moves the first line to the end, or removes it when it is empty.
func (q *queue[T]) endTurn(l *line[T]) {
	copy(q.turns, q.turns[1:])
	last := len(q.turns) - 1
	if len(l.ops) > 0 {
		q.turns[last] = l
		return
	}
	q.turns[last] = nil
	q.turns = q.turns[:last]
	delete(q.lines, l.tenant)
	l.ops, l.credit = nil, 0
	q.spare = append(q.spare, l)
}
