package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/command"
)

const (
	maxLookups    = 64               // keys in one query
	lookupTimeout = 30 * time.Second // for a query; its callers may all have gone
)

var findCommands = prepared("command_find_all", `SELECT `+names(commandColumns)+` FROM `+rows(1, "of text", "under text")+` AS n
	JOIN command_records ON tenant = n.of AND idempotency_key = n.under`)

// lookups collects the lookups of records by key that arrive while a query runs; the next query answers them all. A round trip
// for each would cost more than the search itself.
type lookups struct {
	db *database

	mu      sync.Mutex
	waiting []*lookup
	running bool
}

type lookup struct {
	id    command.RecordID
	found *command.Record
	err   error
	done  chan struct{}
}

// find returns the record under a key, or nil.
func (l *lookups) find(ctx context.Context, id command.RecordID) (*command.Record, error) {
	q := &lookup{id: id, done: make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, q)
	if !l.running {
		l.running = true
		go l.run()
	}
	l.mu.Unlock()
	select {
	case <-q.done:
		return q.found, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run answers lookups until none waits.
func (l *lookups) run() {
	for {
		l.mu.Lock()
		n := min(len(l.waiting), maxLookups)
		batch := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		if n == 0 {
			l.waiting, l.running = nil, false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		found, err := l.query(batch)
		for _, q := range batch {
			if r := found[q.id]; r != nil {
				own := *r // others may have asked for the same key
				q.found = &own
			}
			q.err = err
			close(q.done)
		}
	}
}

func (l *lookups) query(batch []*lookup) (map[command.RecordID]*command.Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	conn, err := l.db.hot.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	ids := make([]command.RecordID, 0, len(batch))
	found := make(map[command.RecordID]*command.Record, len(batch))
	for _, q := range batch {
		if _, double := found[q.id]; !double {
			found[q.id] = nil
			ids = append(ids, q.id)
		}
	}
	p := newPipeline(ctx, conn.Conn().PgConn())
	addRecordIDs(p.begin(), ids)
	p.add(findCommands, func(r *row) {
		record := readCommand(r)
		found[command.RecordID{Tenant: record.Tenant, Key: record.Key}] = record
	})
	return found, p.run()
}

// addRecordIDs adds the tenants and the keys as two parameters.
func addRecordIDs(a *parameters, ids []command.RecordID) {
	column(a, typeText, ids, func(id command.RecordID) { a.text(id.Tenant) })
	column(a, typeText, ids, func(id command.RecordID) { a.text(id.Key) })
}
