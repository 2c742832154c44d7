package commit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

type fakeOp struct {
	name string
	rows int
}

func newFakeQueue() *queue[fakeOp] { return newQueue(func(op fakeOp) int { return op.rows }) }

func names(ops []fakeOp) string {
	var list []string
	for _, op := range ops {
		list = append(list, op.name)
	}
	return strings.Join(list, " ")
}

// A tenant with many large operations delays another tenant's small operation by one transaction at most, however many it has
// queued.
func TestTenantsTakeTurns(t *testing.T) {
	large, small := godwit.TenantID{1}, godwit.TenantID{2}
	q := newFakeQueue()
	for i := range 50 {
		q.push(large, fakeOp{fmt.Sprintf("L%d", i), 1000})
	}
	for i := range 3 {
		q.push(small, fakeOp{fmt.Sprintf("s%d", i), 2})
	}
	if got := names(q.take(1024, 1024)); got != "s0 s1 s2 L0" {
		t.Errorf("the first transaction carries %q", got)
	}
	q.push(small, fakeOp{"s3", 2})
	if got := names(q.take(1024, 1024)); !strings.Contains(got, "s3") {
		t.Errorf("the second transaction carries %q", got)
	}
	if q.length != 48 {
		t.Errorf("%d operations are left", q.length)
	}
}

// Tenants with large backlogs share the rows equally, whatever the size of their operations.
func TestTurnsCountRows(t *testing.T) {
	q := newFakeQueue()
	sizes := map[string]int{"a": 1, "b": 10, "c": 50}
	for name, rows := range sizes {
		for range 20000 / rows {
			q.push(godwit.TenantID{name[0]}, fakeOp{name, rows})
		}
	}
	written := map[string]int{}
	for range 20 {
		for _, op := range q.take(1<<20, 1000) {
			written[op.name] += op.rows
		}
	}
	for name, rows := range written {
		if rows < 5500 || rows > 7800 {
			t.Errorf("tenant %s wrote %d of 20000 rows, want about a third", name, rows)
		}
	}
}

// A transaction does not exceed its bound of rows, except for a single larger operation.
func TestTransactionsAreBounded(t *testing.T) {
	q := newFakeQueue()
	for i, rows := range []int{5, 400, 700, 5000, 3, 3} {
		q.push(godwit.TenantID{1}, fakeOp{fmt.Sprint(i), rows})
	}
	for _, want := range []string{"0 1", "2", "3", "4 5", ""} {
		if got := names(q.take(1024, 1024)); got != want {
			t.Errorf("a transaction carries %q, want %q", got, want)
		}
	}
	q.push(godwit.TenantID{1}, fakeOp{"a", 1})
	q.push(godwit.TenantID{1}, fakeOp{"b", 1})
	if got := names(q.take(1, 1024)); got != "a" {
		t.Errorf("one operation at a time: %q", got)
	}
}

// Operations of one tenant stay in order, even if some are put back.
func TestOperationsStayInOrder(t *testing.T) {
	q := newFakeQueue()
	tenant := godwit.TenantID{1}
	for _, name := range []string{"a", "b", "c", "d"} {
		q.push(tenant, fakeOp{name, 1})
	}
	back := q.take(2, 1024)
	q.pushFront(tenant, back...)
	if got := names(q.take(10, 1024)); got != "a b c d" || q.length != 0 || len(q.lines) != 0 {
		t.Errorf("%q, %d left", got, q.length)
	}
}

// Slow transactions carry fewer records, so that requests do not wait for them; fast ones carry more again.
func TestLimitFollowsHowLongATransactionTakes(t *testing.T) {
	l := limit{rows: MaxRows}
	for range 10 {
		l.learn(2 * slowWrite)
	}
	if l.rows != minRows {
		t.Errorf("%d rows after slow transactions", l.rows)
	}
	l.learn((slowWrite + fastWrite) / 2)
	if l.rows != minRows {
		t.Errorf("%d rows after a transaction that is neither slow nor fast", l.rows)
	}
	for range 30 {
		l.learn(0)
	}
	if l.rows != MaxRows {
		t.Errorf("%d rows after fast transactions", l.rows)
	}
}

// A tenant that was alone for a long time gets its fair share at once when another tenant arrives.
func TestRowsWrittenAloneAreNoDebt(t *testing.T) {
	q := newFakeQueue()
	early, late := godwit.TenantID{1}, godwit.TenantID{2}
	for range 20000 {
		q.push(early, fakeOp{"e", 1})
	}
	for range 10 {
		q.take(1024, 1024)
	}
	for range 20000 {
		q.push(late, fakeOp{"l", 1})
	}
	share := 0
	for _, op := range q.take(1024, 1024) {
		if op.name == "e" {
			share++
		}
	}
	if share < 400 || share > 624 {
		t.Errorf("%d of 1024 rows are of the tenant that was alone before", share)
	}
}
