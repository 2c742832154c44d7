package postgres

import (
	"testing"
)

// pending_deliveries, which every delivery passes through, stays as small as its content.
func TestPendingDeliveriesStaySmall(t *testing.T) {
	s := openAt(t, Options{})
	l := newLoad(t, s)
	const batches, size = 100, 1000
	for range batches {
		accepted := l.accepts(size, false)
		l.commit(t, accepted, l.results(accepted))
	}
	s.vacuum.close() // waits for the vacuum in progress
	full := int64(batches*size) * 150
	if bytes := int64(count(t, s, `SELECT pg_relation_size('pending_deliveries')`)); bytes > full*3/4 {
		t.Errorf("pending_deliveries has %d bytes after %d deliveries: it was not vacuumed", bytes, batches*size)
	}
}
