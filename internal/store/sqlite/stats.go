package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

// history keeps the history for charts.
type history struct{ *database }

// The states of a log row.
const (
	logCommitted int64 = iota
	logMerged
	logReady
	logAside
)

// logRows bounds the log rows that one step merges.
const logRows = 20_000

// BeginStats stores when the history begins.
func (s *history) BeginStats(ctx context.Context, now time.Time) error {
	began := false
	err := s.read(ctx, "begin stats", func(c *conn) (err error) {
		began, err = c.one(ctx, "SELECT 1 FROM stats_begin", nil, nil)
		return err
	})
	if err != nil || began {
		return err
	}
	return s.write(ctx, "begin stats", func(c *conn) error {
		_, err := c.exec("INSERT INTO stats_begin (one, at) VALUES (1, ?) ON CONFLICT DO NOTHING", micros(now))
		return err
	})
}

// FoldStats adds one ready row to pages, or merges the log. Rows are decoded outside of the turn to write: no other process changes them.
func (s *history) FoldStats(ctx context.Context, f store.StatsFold) (*store.StatsFolded, error) {
	out := &store.StatsFolded{}
	most := logMerged
	if f.Aside {
		most = logAside
	}
	var ready, committed, last int64
	var read int64
	var merger stats.Merger
	var aside []int64
	err := s.read(ctx, "read the log of stats", func(c *conn) error {
		_, err := c.one(ctx, "SELECT n FROM stats_log WHERE state = ? ORDER BY n LIMIT 1", []driver.Value{logReady}, func(r *rows) { ready = r.int(0) })
		if err != nil || ready != 0 {
			return err
		}
		return c.each(ctx, "SELECT n, state, data FROM stats_log WHERE state <= ? ORDER BY n LIMIT ?", []driver.Value{most, int64(logRows)}, func(r *rows) error {
			read++
			last = r.int(0)
			if r.int(1) == logCommitted {
				committed++
			}
			if merger.Add(r.blob(2)) != nil {
				aside = append(aside, last)
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return nil, err
	case ready != 0:
		out.More = true
		return out, s.write(ctx, "fold stats", func(c *conn) error { return applyLog(ctx, c, ready, out) })
	case read == 0 || !f.Apply && committed < 2:
		return out, nil
	}
	out.Whole = read < logRows
	out.More, out.Aside = f.Apply || !out.Whole, len(aside)
	state, entries := logMerged, 4096
	if f.Apply {
		state, entries = logReady, store.StatsRowEntries
	}
	return out, s.write(ctx, "merge the log of stats", func(c *conn) error {
		for _, n := range aside {
			if _, err := c.exec("UPDATE stats_log SET state = ? WHERE n = ?", logAside+1, n); err != nil {
				return err
			}
		}
		removed, err := c.exec("DELETE FROM stats_log WHERE n <= ? AND state <= ?", last, most)
		if err != nil {
			return err
		}
		if removed != read-int64(len(aside)) {
			return fmt.Errorf("the log of stats changed: %w", store.ErrConflict)
		}
		if len(aside) > 0 {
			if _, err := c.exec("UPDATE stats_log SET state = ? WHERE state = ?", logAside, logAside+1); err != nil {
				return err
			}
		}
		for _, row := range merger.Rows(entries) {
			if _, err := c.exec("INSERT INTO stats_log (state, data) VALUES (?, ?)", state, row); err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	ofPage   = " WHERE level = ? AND chunk = ? AND kind = ? AND owner = ? AND endpoint = ?"
	readPage = "SELECT counts, causes FROM stats" + ofPage
	putPage  = `INSERT INTO stats (level, chunk, kind, owner, endpoint, counts, causes) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (level, chunk, kind, owner, endpoint) DO UPDATE SET counts = excluded.counts, causes = excluded.causes`
	readLatency = "SELECT latency FROM stats_latency" + ofPage
	putLatency  = `INSERT INTO stats_latency (level, chunk, kind, owner, endpoint, latency) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (level, chunk, kind, owner, endpoint) DO UPDATE SET latency = excluded.latency`
)

// applyLog adds a log row to its pages, and deletes it.
func applyLog(ctx context.Context, c *conn, n int64, out *store.StatsFolded) error {
	var row []byte
	if ok, err := c.one(ctx, "SELECT data FROM stats_log WHERE n = ?", []driver.Value{n}, func(r *rows) { row = r.blob(0) }); err != nil || !ok {
		return err
	}
	tenants, err := stats.TenantsOf(row)
	owners := make(map[godwit.TenantID]stats.Owner, len(tenants))
	for i := 0; i < len(tenants) && err == nil; i++ {
		id := tenants[i]
		_, err = c.one(ctx, "SELECT environment_id, deleted_at FROM tenants WHERE id = ?", ids(id[:]), func(r *rows) {
			owners[id] = stats.Owner{Environment: r.id(0), Deleted: r.int(1) != 0}
		})
		if err != nil {
			return err
		}
	}
	var deltas []*stats.Delta
	if err == nil {
		deltas, err = stats.Deltas(row, owners)
	}
	if err != nil {
		out.Aside++
		_, err = c.exec("UPDATE stats_log SET state = ? WHERE n = ?", logAside, n)
		return err
	}
	for _, d := range deltas {
		if err := addDelta(ctx, c, d, out); err != nil {
			return err
		}
	}
	_, err = c.exec("DELETE FROM stats_log WHERE n = ?", n)
	return err
}

// addDelta adds to a page.
func addDelta(ctx context.Context, c *conn, d *stats.Delta, out *store.StatsFolded) error {
	key := []driver.Value{int64(d.Level), d.Chunk, int64(d.Kind), d.Owner[:], d.Endpoint[:]}
	key = key[:len(key):len(key)]
	var p stats.Page
	_, err := c.one(ctx, readPage, key, func(r *rows) { p.Counts, p.Causes = r.blob(0), r.blob(1) })
	if err == nil && d.HasLatency() {
		_, err = c.one(ctx, readLatency, key, func(r *rows) { p.Latency = r.blob(0) })
	}
	if err != nil {
		return err
	}
	if d.AddTo(&p) {
		out.Damaged++
	}
	_, err = c.exec(putPage, append(key, bytesOf(p.Counts), bytesOf(p.Causes))...)
	if err == nil && len(p.Latency) > 0 {
		_, err = c.exec(putLatency, append(key, p.Latency)...)
	}
	return err
}

// bytesOf returns bytes that are not null.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// ReadStats reads pages, and the log beside them.
func (s *history) ReadStats(ctx context.Context, sel stats.Selection, each func(*stats.Page) error) (*stats.Snapshot, error) {
	out := &stats.Snapshot{}
	err := s.read(ctx, "read stats", func(c *conn) error {
		if sel.NeedsOwners() {
			out.Owners = map[godwit.TenantID]stats.Owner{}
			err := c.each(ctx, "SELECT id, environment_id, deleted_at FROM tenants", nil, func(r *rows) error {
				out.Owners[r.id(0)] = stats.Owner{Environment: r.id(1), Deleted: r.int(2) != 0}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if err := eachPage(ctx, c, &sel, func(p *stats.Page) error {
			if sel.Many() && !sel.Has(p.Owner, out.Owners) {
				return nil
			}
			return each(p)
		}); err != nil {
			return err
		}
		if _, err := c.one(ctx, "SELECT at FROM stats_begin", nil, func(r *rows) { out.Began = r.time(0) }); err != nil {
			return err
		}
		return c.each(ctx, "SELECT data FROM stats_log WHERE state < ?", []driver.Value{logAside}, func(r *rows) error {
			out.Log = append(out.Log, r.blob(0))
			return nil
		})
	})
	return out, err
}

// eachPage reads the pages of a selection, chunk by chunk.
func eachPage(ctx context.Context, c *conn, sel *stats.Selection, each func(*stats.Page) error) error {
	columns, from := "s.owner, s.endpoint", "stats s"
	for _, part := range []struct {
		is   stats.Parts
		name string
	}{{stats.CountsPart, "s.counts"}, {stats.LatencyPart, "l.latency"}, {stats.CausesPart, "s.causes"}} {
		if sel.Parts&part.is == 0 {
			part.name = "NULL"
		}
		columns += ", " + part.name
	}
	if sel.Parts&stats.LatencyPart != 0 {
		from += ` LEFT JOIN stats_latency l ON l.level = s.level AND l.chunk = s.chunk AND l.kind = s.kind AND l.owner = s.owner AND l.endpoint = s.endpoint`
	}
	query := "SELECT " + columns + " FROM " + from + " WHERE s.level = ? AND s.chunk = ? AND s.kind = ?"
	if sel.Parts == stats.CausesPart {
		query += " AND length(s.causes) > 0"
	}
	var owned [][]driver.Value // further conditions, one query for each
	switch {
	case len(sel.Tenants) > 0:
		query += " AND s.owner = ?"
		for _, id := range sel.Tenants {
			owned = append(owned, ids(id[:]))
		}
	case !sel.Many() && len(sel.Endpoints) > 0:
		query += " AND s.owner = ? AND s.endpoint = ?"
		for _, id := range sel.Endpoints {
			owned = append(owned, ids(sel.Owner[:], id[:]))
		}
	case len(sel.Endpoints) > 0:
		query += " AND s.owner = (SELECT tenant_id FROM endpoints WHERE id = ?) AND s.endpoint = ?"
		for _, id := range sel.Endpoints {
			owned = append(owned, ids(id[:], id[:]))
		}
	case !sel.Many():
		query += " AND s.owner = ?"
		owned = append(owned, ids(sel.Owner[:]))
	default:
		owned = append(owned, nil)
	}
	p := stats.Page{}
	p.Kind = sel.Kind
	for _, span := range sel.Spans {
		p.Level = span.Level
		first, last := span.Chunks()
		for chunk := first; chunk <= last; chunk++ {
			for _, more := range owned {
				args := append([]driver.Value{int64(span.Level), chunk, int64(sel.Kind)}, more...)
				err := c.each(ctx, query, args, func(r *rows) error {
					p.Chunk, p.Owner, p.Endpoint = chunk, r.id(0), r.id(1)
					p.Counts, p.Latency, p.Causes = r.blob(2), r.blob(3), r.blob(4)
					return each(&p)
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// statsTables are the tables of pages.
var statsTables = [...]string{"stats", "stats_latency"}

// SweepStats removes pages of the past, and of deleted tenants.
func (s *history) SweepStats(ctx context.Context, sw store.StatsSweep) (removed int64, more bool, err error) {
	limit := int64(max(sw.Limit, 1))
	err = s.write(ctx, "sweep stats", func(c *conn) error {
		for _, level := range stats.Levels {
			if sw.Before[level].IsZero() {
				continue
			}
			for _, table := range statsTables {
				n, err := c.exec("DELETE FROM "+table+" WHERE (level, chunk, kind, owner, endpoint) IN (SELECT level, chunk, kind, owner, endpoint FROM "+table+
					" WHERE level = ? AND chunk < ? LIMIT ?)", int64(level), level.Chunk(sw.Before[level].Unix()), limit)
				if err != nil {
					return err
				}
				if table == statsTables[0] {
					removed += n
				}
				more = more || n == limit
			}
		}
		n, left, err := sweepGone(ctx, c, limit)
		removed += n
		more = more || left
		return err
	})
	return removed, more, err
}

// sweepGone removes pages of one deleted tenant.
func sweepGone(ctx context.Context, c *conn, limit int64) (removed int64, more bool, err error) {
	var gone []byte
	if _, err := c.one(ctx, "SELECT tenant_id FROM stats_gone LIMIT 1", nil, func(r *rows) { gone = r.blob(0) }); err != nil || gone == nil {
		return 0, false, err
	}
	type chunk struct{ level, chunk int64 }
	var chunks []chunk
	err = c.each(ctx, `WITH RECURSIVE chunks (level, chunk) AS (
			SELECT * FROM (SELECT level, chunk FROM stats ORDER BY level, chunk LIMIT 1)
			UNION ALL
			SELECT (SELECT level FROM stats WHERE (level, chunk) > (chunks.level, chunks.chunk) ORDER BY level, chunk LIMIT 1),
				(SELECT chunk FROM stats WHERE (level, chunk) > (chunks.level, chunks.chunk) ORDER BY level, chunk LIMIT 1)
			FROM chunks WHERE chunks.level IS NOT NULL)
		SELECT level, chunk FROM chunks WHERE level IS NOT NULL`, nil, func(r *rows) error {
		chunks = append(chunks, chunk{r.int(0), r.int(1)})
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	for _, at := range chunks {
		for _, kind := range []stats.Kind{stats.OfTenant, stats.OfEndpoint} {
			for i := len(statsTables) - 1; i >= 0; i-- { // the chunks are those of the first table, so that one goes last
				n, err := c.exec("DELETE FROM "+statsTables[i]+" WHERE (level, chunk, kind, owner, endpoint) IN (SELECT level, chunk, kind, owner, endpoint FROM "+statsTables[i]+
					" WHERE level = ? AND chunk = ? AND kind = ? AND owner = ? LIMIT ?)", at.level, at.chunk, int64(kind), gone, limit)
				if err != nil {
					return removed, false, err
				}
				removed += n
				if limit -= n; limit <= 0 {
					return removed, true, nil
				}
			}
		}
	}
	_, err = c.exec("DELETE FROM stats_gone WHERE tenant_id = ?", gone)
	return removed, true, err
}
