//go:build unix

package faults

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch records what the run itself does not cause, until stop is closed: memory, leases, and moments at which machine or disk were too busy for anything to
// be expected of them.
func (x *Run) watch(stop <-chan struct{}) {
	every := func(interval time.Duration, look func()) {
		x.watching.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(interval):
					look()
				}
			}
		})
	}
	every(time.Second, x.weigh)
	last := x.History.Now()
	every(100*time.Millisecond, func() {
		if now := x.History.Now(); now-last > stallAbove {
			add(x.History, &x.History.Faults, Fault{Span{last, now}, Stall, "", Torn})
		}
		last = x.History.Now()
	})
	for range 2 {
		every(500*time.Millisecond, x.readLeases)
	}
	every(250*time.Millisecond, func() {
		s := Span{From: x.History.Now()}
		err := x.Cluster.Database.Query("SELECT pg_logical_emit_message(true, '', '')")
		if s.To = x.History.Now(); err == nil && s.To-s.From > stallAbove {
			add(x.History, &x.History.Faults, Fault{s, Stall, "", Torn})
		}
	})
}

const stallAbove = time.Second

func (x *Run) weigh() {
	for _, n := range x.Cluster.all() {
		if bytes := n.Memory(); bytes > 0 {
			add(x.History, &x.History.Memories, Memory{x.History.Now(), n.Name, n.Process(), bytes})
		}
	}
}

// readLeases reads all leases in one statement. While the database is away it reads nothing.
func (x *Run) readLeases() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, x.Cluster.Database.Primary().URL())
	if err != nil {
		return
	}
	defer conn.Close(ctx)
	from := x.History.Now()
	rows, err := conn.Query(ctx, `SELECT shard, owner, epoch FROM leases`)
	if err != nil {
		return
	}
	reads, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r LeaseRead, err error) {
		return r, row.Scan(&r.Shard, &r.Owner, &r.Epoch)
	})
	if err != nil {
		return
	}
	for _, r := range reads {
		r.Span = Span{from, x.History.Now()}
		add(x.History, &x.History.Leases, r)
	}
}
