package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

// history keeps the history for charts.
type history struct {
	*database
	removed atomic.Int64 // log rows since the last vacuum
}

// The states of a log row.
const (
	logCommitted int16 = iota
	logMerged
	logReady
	logAside
)

const (
	// logRows bounds the log rows that one step merges.
	logRows = 20_000
	// logVacuum is after how many removed rows the log is vacuumed. The server's autovacuum looks only once a minute.
	logVacuum = 5_000
)

// BeginStats stores when the history begins.
func (s *history) BeginStats(ctx context.Context, now time.Time) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO stats_begin (one, at) SELECT 1, $1 WHERE NOT EXISTS (SELECT FROM stats_begin) ON CONFLICT DO NOTHING`, now)
	return failed("begin stats", err)
}

// FoldStats adds one ready row to pages, or merges the log.
func (s *history) FoldStats(ctx context.Context, f store.StatsFold) (*store.StatsFolded, error) {
	out := &store.StatsFolded{}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var locked bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(statsLock)).Scan(&locked); err != nil || !locked {
			return err
		}
		r, err := tx.Query(ctx, `SELECT ctid, data FROM stats_log WHERE state = $1 LIMIT 1`, logReady)
		if err != nil {
			return err
		}
		var place pgtype.TID
		var row []byte
		ready := false
		if _, err := pgx.ForEachRow(r, []any{&place, &row}, func() error { ready = true; return nil }); err != nil {
			return err
		}
		if ready {
			out.More = true
			return s.applyLog(ctx, tx, place, row, out)
		}
		return s.mergeLog(ctx, tx, f, out)
	})
	if err != nil {
		return nil, failed("fold stats", err)
	}
	if s.removed.Load() >= logVacuum {
		s.removed.Store(0)
		if _, err := s.pool.Exec(ctx, `VACUUM (SKIP_LOCKED, TRUNCATE false) stats_log`); err != nil && ctx.Err() == nil {
			s.log.Warn("vacuum the log of stats", "error", err)
		}
	}
	return out, nil
}

// mergeLog replaces log rows by merged ones.
func (s *history) mergeLog(ctx context.Context, tx pgx.Tx, f store.StatsFold, out *store.StatsFolded) error {
	most, state, entries := logMerged, logMerged, 4096
	if f.Aside {
		most = logAside
	}
	if f.Apply {
		state, entries = logReady, store.StatsRowEntries
	}
	r, err := tx.Query(ctx, fmt.Sprintf(`SELECT ctid, state, data FROM stats_log WHERE state <= $1 LIMIT %d`, logRows), most)
	if err != nil {
		return err
	}
	var merger stats.Merger
	var merged, aside []pgtype.TID
	var place pgtype.TID
	var was int16
	var row []byte
	committed := 0
	_, err = pgx.ForEachRow(r, []any{&place, &was, &row}, func() error {
		switch {
		case merger.Add(row) == nil:
			merged = append(merged, place)
		default:
			aside = append(aside, place)
		}
		if was == logCommitted {
			committed++
		}
		return nil
	})
	if err != nil || len(merged)+len(aside) == 0 || !f.Apply && committed < 2 {
		return err
	}
	out.Whole = len(merged)+len(aside) < logRows
	out.More, out.Aside = f.Apply || !out.Whole, len(aside)
	if len(aside) > 0 {
		if _, err := tx.Exec(ctx, `UPDATE stats_log SET state = $2 WHERE ctid = ANY ($1)`, aside, logAside); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(ctx, `DELETE FROM stats_log WHERE ctid = ANY ($1)`, merged)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != int64(len(merged)) {
		return fmt.Errorf("the log of stats changed: %w", store.ErrConflict)
	}
	s.removed.Add(int64(len(merged)))
	_, err = tx.Exec(ctx, `INSERT INTO stats_log (state, data) SELECT $1, unnest($2::bytea[])`, state, merger.Rows(entries))
	return err
}

// applyLog adds a log row to its pages, and deletes it.
func (s *history) applyLog(ctx context.Context, tx pgx.Tx, place pgtype.TID, row []byte, out *store.StatsFolded) error {
	tenants, err := stats.TenantsOf(row)
	var deltas []*stats.Delta
	if err == nil {
		var owners map[godwit.TenantID]stats.Owner
		if owners, err = readOwners(ctx, tx, ` WHERE id = ANY ($1)`, uuids(tenants)); err != nil {
			return err
		}
		deltas, err = stats.Deltas(row, owners)
	}
	if err != nil {
		out.Aside++
		_, err = tx.Exec(ctx, `UPDATE stats_log SET state = $2 WHERE ctid = $1`, place, logAside)
		return err
	}
	if err := addDeltas(ctx, tx, deltas, out); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM stats_log WHERE ctid = $1`, place)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("the log of stats changed: %w", store.ErrConflict)
	}
	s.removed.Add(1)
	return err
}

// pageKeys are the columns of keys, as arrays.
type pageKeys struct {
	levels, kinds     []int16
	chunks            []int64
	owners, endpoints [][16]byte
}

func (k *pageKeys) add(key *stats.Key) {
	k.levels, k.chunks, k.kinds = append(k.levels, int16(key.Level)), append(k.chunks, key.Chunk), append(k.kinds, int16(key.Kind))
	k.owners, k.endpoints = append(k.owners, key.Owner), append(k.endpoints, key.Endpoint)
}

const unnestedKeys = `unnest($1::int2[], $2::int8[], $3::int2[], $4::uuid[], $5::uuid[]) AS n (level, chunk, kind, owner, endpoint)`

// addDeltas reads the pages of deltas, adds to them and stores them.
func addDeltas(ctx context.Context, tx pgx.Tx, deltas []*stats.Delta, out *store.StatsFolded) error {
	if len(deltas) == 0 {
		return nil
	}
	var keys pageKeys
	pages := make(map[stats.Key]*stats.Page, len(deltas))
	for _, d := range deltas {
		keys.add(&d.Key)
	}
	args := []any{keys.levels, keys.chunks, keys.kinds, keys.owners, keys.endpoints}
	r, err := tx.Query(ctx, `SELECT n.level, n.chunk, n.kind, n.owner, n.endpoint, s.counts, s.latency, s.causes FROM `+unnestedKeys+`
		CROSS JOIN LATERAL (SELECT counts, latency, causes FROM stats AS s WHERE s.level = n.level AND s.chunk = n.chunk AND s.kind = n.kind
			AND s.owner = n.owner AND s.endpoint = n.endpoint OFFSET 0) AS s`, args...)
	if err != nil {
		return err
	}
	var level, kind int16
	var chunk int64
	var owner, endpoint [16]byte
	var counts, latency, causes []byte
	_, err = pgx.ForEachRow(r, []any{&level, &chunk, &kind, &owner, &endpoint, &counts, &latency, &causes}, func() error {
		p := &stats.Page{Key: stats.Key{Level: stats.Level(level), Chunk: chunk, Kind: stats.Kind(kind), Owner: owner, Endpoint: endpoint}}
		p.Counts, p.Latency, p.Causes = counts, latency, causes
		counts, latency, causes = nil, nil, nil
		pages[p.Key] = p
		return nil
	})
	if err != nil {
		return err
	}
	var parts [3][][]byte
	for _, d := range deltas {
		p := pages[d.Key]
		if p == nil {
			p = &stats.Page{}
		}
		if d.AddTo(p) {
			out.Damaged++
		}
		for i, part := range [...][]byte{p.Counts, p.Latency, p.Causes} {
			if part == nil {
				part = []byte{}
			}
			parts[i] = append(parts[i], part)
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO stats (level, chunk, kind, owner, endpoint, counts, latency, causes)
		SELECT * FROM unnest($1::int2[], $2::int8[], $3::int2[], $4::uuid[], $5::uuid[], $6::bytea[], $7::bytea[], $8::bytea[])
		ON CONFLICT (level, chunk, kind, owner, endpoint) DO UPDATE SET counts = excluded.counts, latency = excluded.latency, causes = excluded.causes`,
		append(args, parts[0], parts[1], parts[2])...)
	return err
}

func readOwners(ctx context.Context, q querier, where string, args ...any) (map[godwit.TenantID]stats.Owner, error) {
	r, err := q.Query(ctx, `SELECT id, environment_id, deleted_at IS NOT NULL FROM tenants`+where, args...)
	if err != nil {
		return nil, err
	}
	owners := map[godwit.TenantID]stats.Owner{}
	var id, environment [16]byte
	var deleted bool
	_, err = pgx.ForEachRow(r, []any{&id, &environment, &deleted}, func() error {
		owners[id] = stats.Owner{Environment: environment, Deleted: deleted}
		return nil
	})
	return owners, err
}

func uuids[T ~[16]byte](list []T) [][16]byte {
	out := make([][16]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// ReadStats reads pages, and the log beside them, in one snapshot.
func (s *history) ReadStats(ctx context.Context, sel stats.Selection, each func(*stats.Page) error) (*stats.Snapshot, error) {
	out := &stats.Snapshot{}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		if sel.NeedsOwners() {
			if out.Owners, err = readOwners(ctx, tx, ""); err != nil {
				return err
			}
		}
		err = eachPage(ctx, tx, &sel, func(p *stats.Page) error {
			if sel.Many() && !sel.Has(p.Owner, out.Owners) {
				return nil
			}
			return each(p)
		})
		if err != nil {
			return err
		}
		r, err := tx.Query(ctx, `SELECT at FROM stats_begin`)
		if err != nil {
			return err
		}
		if _, err := pgx.ForEachRow(r, []any{&out.Began}, func() error { return nil }); err != nil {
			return err
		}
		if r, err = tx.Query(ctx, `SELECT data FROM stats_log WHERE state < $1`, logAside); err != nil {
			return err
		}
		var row []byte
		_, err = pgx.ForEachRow(r, []any{&row}, func() error {
			out.Log = append(out.Log, row)
			row = nil
			return nil
		})
		return err
	})
	return out, failed("read stats", err)
}

// eachPage reads the pages of a selection, a query for each span.
func eachPage(ctx context.Context, tx pgx.Tx, sel *stats.Selection, each func(*stats.Page) error) error {
	column := func(part stats.Parts, name string) string {
		if sel.Parts&part == 0 {
			return `, NULL::bytea`
		}
		return `, s.` + name
	}
	columns := `s.chunk, s.owner, s.endpoint` + column(stats.CountsPart, "counts") + column(stats.LatencyPart, "latency") + column(stats.CausesPart, "causes")
	for _, span := range sel.Spans {
		var w where
		w.add(`s.level = ?`, int16(span.Level))
		first, last := span.Chunks()
		chunks := make([]int64, 0, last-first+1)
		for chunk := first; chunk <= last; chunk++ {
			chunks = append(chunks, chunk)
		}
		w.add(`s.chunk = ANY (?)`, chunks)
		w.add(`s.kind = ?`, int16(sel.Kind))
		if sel.Parts == stats.CausesPart {
			w.add(`s.causes <> ?`, []byte{})
		}
		switch {
		case len(sel.Tenants) > 0:
			w.add(`s.owner = ANY (?)`, uuids(sel.Tenants))
		case !sel.Many():
			w.add(`s.owner = ?`, sel.Owner)
		case len(sel.Endpoints) > 0:
			w.add(`s.owner = ANY (ARRAY(SELECT e.tenant_id FROM endpoints AS e WHERE e.id = ANY (?)))`, uuids(sel.Endpoints))
		}
		if len(sel.Endpoints) > 0 {
			w.add(`s.endpoint = ANY (?)`, uuids(sel.Endpoints))
		}
		r, err := tx.Query(ctx, `SELECT `+columns+` FROM stats AS s`+w.sql(), w.args...)
		if err != nil {
			return err
		}
		p := &stats.Page{}
		p.Level, p.Kind = span.Level, sel.Kind
		var owner, endpoint [16]byte
		_, err = pgx.ForEachRow(r, []any{&p.Chunk, &owner, &endpoint, (*pgtype.DriverBytes)(&p.Counts), (*pgtype.DriverBytes)(&p.Latency), (*pgtype.DriverBytes)(&p.Causes)}, func() error {
			p.Owner, p.Endpoint = owner, endpoint
			return each(p)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SweepStats removes pages of the past, and of deleted tenants.
func (s *history) SweepStats(ctx context.Context, sw store.StatsSweep) (removed int64, more bool, err error) {
	limit := int64(max(sw.Limit, 1))
	for _, level := range stats.Levels {
		if sw.Before[level].IsZero() {
			continue
		}
		tag, err := s.pool.Exec(ctx, `DELETE FROM stats WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM stats WHERE level = $1 AND chunk < $2 LIMIT $3 FOR UPDATE SKIP LOCKED))`, int16(level), level.Chunk(sw.Before[level].Unix()), limit)
		if err != nil {
			return removed, false, failed("sweep stats", err)
		}
		removed += tag.RowsAffected()
		more = more || tag.RowsAffected() == limit
	}
	r, err := s.pool.Query(ctx, `SELECT tenant_id FROM stats_gone LIMIT 1`)
	if err != nil {
		return removed, false, failed("sweep stats", err)
	}
	var gone [16]byte
	if _, err := pgx.ForEachRow(r, []any{&gone}, func() error { return nil }); err != nil || gone == [16]byte{} {
		return removed, more, failed("sweep stats", err)
	}
	tag, err := s.pool.Exec(ctx, `WITH RECURSIVE chunks AS (
			(SELECT level, chunk FROM stats ORDER BY level, chunk LIMIT 1)
			UNION ALL
			SELECT s.level, s.chunk FROM chunks AS c CROSS JOIN LATERAL (
				SELECT level, chunk FROM stats WHERE (level, chunk) > (c.level, c.chunk) ORDER BY level, chunk LIMIT 1) AS s)
		DELETE FROM stats WHERE ctid = ANY (ARRAY(SELECT s.ctid FROM chunks AS c CROSS JOIN LATERAL (
			SELECT ctid FROM stats AS s WHERE s.level = c.level AND s.chunk = c.chunk AND s.kind = ANY ($1) AND s.owner = $2 LIMIT $3) AS s LIMIT $3))`,
		[]int16{int16(stats.OfTenant), int16(stats.OfEndpoint)}, gone, limit)
	if err == nil && tag.RowsAffected() < limit {
		_, err = s.pool.Exec(ctx, `DELETE FROM stats_gone WHERE tenant_id = $1`, gone)
	}
	return removed + tag.RowsAffected(), true, failed("sweep stats", err)
}
