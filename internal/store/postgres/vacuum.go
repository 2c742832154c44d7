package postgres

import (
	"context"
	"sync/atomic"
)

// vacuumAfter is how many rows of pending_deliveries are removed or changed before it is vacuumed, or a tenth of its rows if
// that is more: each vacuum reads all its indexes. Every delivery passes through that table. The server's autovacuum looks
// only once a minute; by then the table is as large as a minute's traffic and no longer cached, which doubles the cost of a
// row.
const vacuumAfter = 20_000

// A vacuumer keeps pending_deliveries small.
type vacuumer struct {
	db    *database
	moved atomic.Int64
	after atomic.Int64
	wake  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
}

func newVacuumer(db *database) *vacuumer {
	v := &vacuumer{db: db, wake: make(chan struct{}, 1), done: make(chan struct{})}
	v.after.Store(vacuumAfter)
	return v
}

func (v *vacuumer) start() {
	ctx, cancel := context.WithCancel(context.Background())
	v.stop = cancel
	go v.run(ctx)
}

// note counts dead rows that a commit left.
func (v *vacuumer) note(rows int) {
	if v.moved.Add(int64(rows)) < v.after.Load() {
		return
	}
	v.moved.Store(0)
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

func (v *vacuumer) run(ctx context.Context) {
	defer close(v.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		}
		if err := v.vacuum(ctx); err != nil && ctx.Err() == nil {
			v.db.log.Warn("vacuum pending deliveries", "error", err)
		}
	}
}

// vacuum does not wait for another vacuum, and does not lock the table to truncate it.
func (v *vacuumer) vacuum(ctx context.Context) error {
	_, err := v.db.pool.Exec(ctx, `VACUUM (SKIP_LOCKED, TRUNCATE false, PROCESS_TOAST false) pending_deliveries`)
	if err != nil {
		return err
	}
	var rows int64
	err = v.db.pool.QueryRow(ctx, `SELECT reltuples::int8 FROM pg_class WHERE oid = 'pending_deliveries'::regclass`).Scan(&rows)
	v.after.Store(max(vacuumAfter, rows/10))
	return err
}

func (v *vacuumer) close() {
	v.stop()
	<-v.done
}
