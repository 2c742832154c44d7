package postgres

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// partitioned lists the tables that grow with time. Each period has one partition of each table, with a common suffix.
var partitioned = []string{"events", "deliveries", "attempts"}

const (
	// ahead is how many partitions are prepared in advance. If no sweep runs for that long, rows go to the default partitions,
	// where queries find them but they must be deleted one by one.
	ahead = 3
	// patience is how long a change of partitions waits for its lock. Commits queue behind it meanwhile.
	patience = `SET LOCAL lock_timeout = '250ms'`
)

// A partition holds a range of ids, and therefore of time. The default one has no range.
type partition struct {
	name     string
	suffix   string
	from, to [16]byte
	fallback bool
	bytes    int64
	rows     int64 // estimated
}

// endedBy reports whether all its ids are older than t.
func (p *partition) endedBy(t time.Time) bool {
	first := firstID(t)
	return !p.fallback && bytes.Compare(p.to[:], first[:]) <= 0
}

// begunBy reports whether it may hold ids older than t.
func (p *partition) begunBy(t time.Time) bool {
	first := firstID(t)
	return p.fallback || bytes.Compare(p.from[:], first[:]) < 0
}

// partitionsOf lists a table's partitions, oldest first.
func partitionsOf(ctx context.Context, q querier, table string) ([]partition, error) {
	r, err := q.Query(ctx, `SELECT c.relname, pg_get_expr(c.relpartbound, c.oid), pg_relation_size(c.oid), c.reltuples::int8
		FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = $1::text::regclass ORDER BY c.relname`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, func(r pgx.CollectableRow) (partition, error) {
		var p partition
		var bounds string
		if err := r.Scan(&p.name, &bounds, &p.bytes, &p.rows); err != nil {
			return p, err
		}
		p.suffix = strings.TrimPrefix(p.name, table)
		p.fallback = bounds == "DEFAULT"
		if p.fallback {
			return p, nil
		}
		ids := strings.Split(bounds, "'") // FOR VALUES FROM ('…') TO ('…')
		if len(ids) != 5 || !parseUUID(ids[1], &p.from) || !parseUUID(ids[3], &p.to) {
			return p, fmt.Errorf("partition %s has bounds %q", p.name, bounds)
		}
		return p, nil
	})
}

func parseUUID(text string, id *[16]byte) bool {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	return err == nil && copy(id[:], raw) == 16
}

// partitions makes and drops partitions.
type partitions struct {
	*database
	width    time.Duration // the period of one partition
	prepared atomic.Int64  // partitions exist up to this time, in Unix nanoseconds
}

// prepare makes partitions for the time around now and some in advance; for the zero time it uses the server's
// clock.
func (s *partitions) prepare(ctx context.Context, now time.Time) error {
	if now.IsZero() {
		if err := s.pool.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
			return failed("prepare partitions", err)
		}
	}
	need := now.Add(ahead * s.width)
	if need.Add(-s.width).UnixNano() < s.prepared.Load() {
		return nil
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(sweepLock)); err != nil {
			return err
		}
		return s.extend(ctx, tx, now, need)
	})
	switch state := sqlState(err); state {
	case "":
	case stateLockTimeout: // the next sweep tries again; some partitions are prepared in advance
		return nil
	case stateCheckViolation:
		s.log.Warn("rows lie where a partition was to be made; they stay in the default partition until they are swept", "error", err)
		err = nil
	}
	if err != nil {
		return failed("prepare partitions", err)
	}
	s.prepared.Store(need.UnixNano())
	return nil
}

// extend continues at the end of the last partition, or starts with the one that contains now.
func (s *partitions) extend(ctx context.Context, tx pgx.Tx, now, need time.Time) error {
	list, err := partitionsOf(ctx, tx, partitioned[0])
	if err != nil {
		return err
	}
	width := s.width
	from := now.Truncate(width)
	for i := range list {
		if end := godwit.EventID(list[i].to).Time(); !list[i].fallback && end.After(from) {
			from = end
		}
	}
	if _, err := tx.Exec(ctx, patience); err != nil {
		return err
	}
	for ; from.Before(need); from = from.Truncate(width).Add(width) {
		to := from.Truncate(width).Add(width)
		if err := makePartition(ctx, tx, from, to); err != nil {
			return err
		}
		s.log.Info("made partition", "from", from, "to", to)
	}
	return nil
}

func makePartition(ctx context.Context, tx pgx.Tx, from, to time.Time) error {
	for _, table := range partitioned {
		_, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s%s PARTITION OF %s FOR VALUES FROM ('%x') TO ('%x')`,
			table, from.UTC().Format("_20060102_150405"), table, firstID(from), firstID(to)))
		if err != nil {
			return err
		}
	}
	return nil
}

// dropEvents drops a partition of events and of their deliveries, unless a pending delivery still needs one of them. It moves
// restored events to the default partition, with their deliveries.
func (s *partitions) dropEvents(ctx context.Context, p partition, before time.Time) (bool, error) {
	kept := ` FROM (SELECT * FROM kept_events WHERE kept_at >= $1) AS k JOIN events` + p.suffix + ` AS e
		ON e.tenant_id = k.tenant_id AND e.id = k.id`
	// The events of one fan-out have ids of the same time.
	const needed = `SELECT EXISTS (SELECT FROM pending_deliveries WHERE event_id >= $1 AND event_id < $2)
		OR EXISTS (SELECT FROM fanouts WHERE id >= $1 AND id < $2)`
	var busy bool
	if err := s.pool.QueryRow(ctx, needed, p.from, p.to).Scan(&busy); err != nil || busy {
		return false, err
	}
	dropped := false
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, patience); err != nil {
			return err
		}
		// Lock the parents first, as all transactions do; after that no transaction can start to need the partition.
		if _, err := tx.Exec(ctx, `LOCK TABLE ONLY events, ONLY deliveries IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, needed, p.from, p.to).Scan(&busy); err != nil || busy {
			return err
		}
		for _, step := range []struct {
			sql  string
			args []any
		}{
			{`ALTER TABLE events DETACH PARTITION events` + p.suffix, nil},
			{`ALTER TABLE deliveries DETACH PARTITION deliveries` + p.suffix, nil},
			{`INSERT INTO events SELECT e.*` + kept, []any{before}},
			{`INSERT INTO deliveries SELECT d.*` + kept + ` CROSS JOIN LATERAL ` + idsOf("e.deliveries") + ` AS n
				JOIN deliveries` + p.suffix + ` AS d ON d.tenant_id = e.tenant_id AND d.id = n.id`, []any{before}},
			{`DROP TABLE events` + p.suffix + `, deliveries` + p.suffix, nil},
		} {
			if _, err := tx.Exec(ctx, step.sql, step.args...); err != nil {
				return err
			}
		}
		dropped = true
		return nil
	})
	return s.settleDrop("events"+p.suffix, dropped, err)
}

// dropAttempts drops a partition of attempts.
func (s *partitions) dropAttempts(ctx context.Context, p partition) (bool, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, patience); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DROP TABLE `+p.name)
		return err
	})
	return s.settleDrop(p.name, err == nil, err)
}

// settleDrop leaves a drop to the next sweep if its lock was taken or another node has dropped the table.
func (s *partitions) settleDrop(name string, dropped bool, err error) (bool, error) {
	switch sqlState(err) {
	case stateLockTimeout, stateUndefinedTable:
		return false, nil
	}
	if err == nil && dropped {
		s.log.Info("dropped partition", "name", name)
	}
	return dropped && err == nil, err
}

// idsOf unpacks the ids of an event's deliveries from the event's row.
func idsOf(column string) string {
	return `(SELECT encode(substring(` + column + ` FROM 16 * i + 1 FOR 16), 'hex')::uuid AS id
		FROM generate_series(0, octet_length(` + column + `) / 16 - 1) AS i)`
}
