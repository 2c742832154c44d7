package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/store"
)

var evidenceRows = newBulk("evidence_items (tenant, seq, key, command_id, submitted_id, target, hash, line)", 8, "")

// appendEvidence stores new items and the heads of their chains.
func appendEvidence(c *conn, items []evidence.Item, heads []evidence.Head) error {
	rows := inserter{bulk: evidenceRows, c: c}
	for i := range items {
		it := &items[i]
		rows.args = append(rows.args, it.Tenant, it.Seq, it.Key, it.CommandID, it.SubmittedID, it.Target, it.Hash, evidence.Line(it))
		if err := rows.added(); err != nil {
			return err
		}
	}
	if err := rows.flush(); err != nil {
		return err
	}
	for _, head := range heads {
		_, err := c.exec(`INSERT INTO evidence_heads (tenant, seq, hash, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at = excluded.at`, head.Tenant, head.Seq, head.Hash, micros(head.At))
		if err != nil {
			return err
		}
	}
	return nil
}

// appendOf appends the evidence of a batch, except for entries about refused results.
func appendOf(c *conn, b *store.Batch, fenced []int) error {
	var (
		entries []*store.NewEvidence
		tenants []string
	)
	for i := range b.Evidence {
		e := &b.Evidence[i]
		if _, refused := slices.BinarySearch(fenced, e.Result); !refused {
			entries, tenants = append(entries, e), append(tenants, e.TenantID.String())
		}
	}
	slices.Sort(tenants)
	heads, err := readHeads(c, slices.Compact(tenants))
	if err != nil {
		return err
	}
	chains := evidence.NewChains(heads)
	for _, e := range entries {
		if err := chains.Link(e.TenantID.String(), e.Entry); err != nil {
			return err
		}
	}
	return appendEvidence(c, chains.Items(), chains.Heads())
}

func readHead(ctx context.Context, c *conn, tenant string) (head evidence.Head, err error) {
	_, err = c.one(ctx, "SELECT tenant, seq, hash, at FROM evidence_heads WHERE tenant = ?", []driver.Value{tenant}, func(r *rows) { head = scanHead(r) })
	return head, err
}

func scanHead(r *rows) evidence.Head {
	return evidence.Head{Tenant: r.text(0), Seq: r.int(1), Hash: r.text(2), At: r.time(3)}
}

// chains keeps the evidence of each tenant as a chain.
type chains struct{ *database }

// EvidenceHead returns the last link of a chain.
func (s *chains) EvidenceHead(ctx context.Context, tenant string) (head evidence.Head, err error) {
	err = s.read(ctx, "read head of evidence", func(c *conn) error {
		head, err = readHead(ctx, c, tenant)
		return err
	})
	return head, err
}

// EvidenceHeads lists the heads by tenant.
func (s *chains) EvidenceHeads(ctx context.Context, after string, limit int) ([]evidence.Head, error) {
	var heads []evidence.Head
	err := s.read(ctx, "list heads of evidence", func(c *conn) error {
		return c.each(ctx, "SELECT tenant, seq, hash, at FROM evidence_heads WHERE tenant > ? ORDER BY tenant LIMIT ?",
			[]driver.Value{after, int64(max(limit, 0))}, func(r *rows) error { heads = append(heads, scanHead(r)); return nil })
	})
	return heads, err
}

// Evidence lists a tenant's evidence, oldest first.
func (s *chains) Evidence(ctx context.Context, q command.EvidenceQuery) ([]evidence.Item, error) {
	query, args := evidenceQuery(&q)
	var items []evidence.Item
	err := s.read(ctx, "list evidence", func(c *conn) error {
		return c.each(ctx, query, args, func(r *rows) error {
			it, err := evidence.Parse(r.blob(1))
			if err != nil {
				return fmt.Errorf("evidence item %d of tenant %s is damaged: %w", r.int(0), q.Tenant, err)
			}
			items = append(items, it)
			return nil
		})
	})
	return items, err
}

// evidenceQuery has one part for each index that applies; each part is in order, and SQLite merges them.
func evidenceQuery(q *command.EvidenceQuery) (text string, args []driver.Value) {
	part := func(cond string, values ...driver.Value) {
		if text != "" {
			text += " UNION ALL "
		}
		text += "SELECT seq, line FROM evidence_items WHERE tenant = ? AND seq > ?" + cond
		args = append(append(args, q.Tenant, q.After), values...)
		if q.Target != "" {
			text += " AND target = ? AND target <> ''"
			args = append(args, q.Target)
		}
	}
	switch {
	case q.CommandID != "" && q.Key != "":
		part(" AND key = ? AND command_id = ? AND command_id <> ''", q.Key, q.CommandID)
		part(" AND key = ? AND submitted_id = ? AND submitted_id <> '' AND submitted_id <> command_id", q.Key, q.CommandID)
	case q.CommandID != "":
		part(" AND command_id = ? AND command_id <> ''", q.CommandID)
		part(" AND submitted_id = ? AND submitted_id <> '' AND submitted_id <> command_id", q.CommandID)
	case q.Key != "":
		part(" AND key = ? AND key <> ''", q.Key)
	default:
		part("")
	}
	limit := int64(q.Limit)
	if limit <= 0 {
		limit = -1 // all
	}
	return text + " ORDER BY seq LIMIT ?", append(args, limit)
}
