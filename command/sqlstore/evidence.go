package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

func (s *Store) evidenceStatements() {
	s.makeHead = s.in(`INSERT INTO ~evidence_heads (tenant, seq, hash, at) VALUES ($1, 0, '', 0) ON CONFLICT (tenant) DO NOTHING`)
	one := `SELECT tenant, seq, hash, at FROM ~evidence_heads WHERE tenant = $1`
	s.lockHead = s.in(one + s.forUpdate())
	s.moveHead = s.in(`UPDATE ~evidence_heads SET seq = $1, hash = $2, at = $3 WHERE tenant = $4`)
	s.insertItem = s.in(`INSERT INTO ~evidence_items (tenant, seq, key, command_id, submitted_id, hash, line) VALUES ($1, $2, $3, $4, $5, $6, $7)`)
	s.head = s.in(one + ` AND seq > 0`)
	s.heads = s.in(`SELECT tenant, seq, hash, at FROM ~evidence_heads WHERE tenant > $1 AND seq > 0 ORDER BY tenant LIMIT $2`)
}

// chains are those that a transaction appends to. It holds their heads until it ends.
type chains struct {
	s     *Store
	tx    *sql.Tx
	heads map[string]evidence.Head
	moved map[string]bool
}

// lockHeads makes the transactions of a tenant take turns: what they read then stays true until they end. The first of its statements
// writes, so that in SQLite the transaction is a writer before it has read anything that could grow old. All are made before any is
// locked, and locked in order, so that nobody waits in a circle.
func (s *Store) lockHeads(ctx context.Context, tx *sql.Tx, tenants []string) (*chains, error) {
	c := &chains{s: s, tx: tx, heads: map[string]evidence.Head{}, moved: map[string]bool{}}
	slices.Sort(tenants)
	tenants = slices.Compact(tenants)
	for _, tenant := range tenants {
		if _, err := tx.ExecContext(ctx, s.makeHead, tenant); err != nil {
			return nil, err
		}
	}
	for _, tenant := range tenants {
		head, err := scanHead(tx.QueryRowContext(ctx, s.lockHead, tenant).Scan)
		if err != nil {
			return nil, err
		}
		c.heads[tenant] = head
	}
	return c, nil
}

// link finds entries their places behind the head of a chain. It stores nothing.
func (c *chains) link(tenant string, entries []evidence.Entry) ([]evidence.Item, error) {
	head := c.heads[tenant]
	items := make([]evidence.Item, len(entries))
	for i := range entries {
		var err error
		if items[i], err = evidence.Link(head, tenant, entries[i]); err != nil {
			return nil, fmt.Errorf("link evidence: %w", err)
		}
		head = items[i].Head()
	}
	return items, nil
}

// append stores items that were linked.
func (c *chains) append(ctx context.Context, items []evidence.Item) error {
	for i := range items {
		it := &items[i]
		_, err := c.tx.ExecContext(ctx, c.s.insertItem, it.Tenant, it.Seq, it.Key, it.CommandID, it.SubmittedID, it.Hash, evidence.Line(it))
		if err != nil {
			return err
		}
		c.heads[it.Tenant], c.moved[it.Tenant] = it.Head(), true
	}
	return nil
}

// move stores how far the chains have come.
func (c *chains) move(ctx context.Context) error {
	for tenant := range c.moved {
		h := c.heads[tenant]
		if _, err := c.tx.ExecContext(ctx, c.s.moveHead, h.Seq, h.Hash, micros(h.At), tenant); err != nil {
			return err
		}
	}
	return nil
}

func scanHead(scan func(...any) error) (evidence.Head, error) {
	var (
		h  evidence.Head
		at int64
	)
	err := scan(&h.Tenant, &h.Seq, &h.Hash, &at)
	h.At = fromMicros(at)
	return h, err
}

// EvidenceHead returns the last link of a tenant's chain.
func (s *Store) EvidenceHead(ctx context.Context, tenant string) (evidence.Head, error) {
	if !storable(tenant) {
		return evidence.Head{}, nil
	}
	h, err := scanHead(s.db.QueryRowContext(ctx, s.head, tenant).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return evidence.Head{}, nil
	case err != nil:
		return evidence.Head{}, fmt.Errorf("read head of evidence: %w", err)
	}
	return h, nil
}

// EvidenceHeads lists the heads of all chains by tenant.
func (s *Store) EvidenceHeads(ctx context.Context, after string, limit int) ([]evidence.Head, error) {
	var heads []evidence.Head
	err := s.rows(ctx, s.heads, []any{after, max(limit, 0)}, func(rows *sql.Rows) error {
		h, err := scanHead(rows.Scan)
		heads = append(heads, h)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list heads of evidence: %w", err)
	}
	return heads, nil
}

// Evidence lists a tenant's evidence, oldest first.
func (s *Store) Evidence(ctx context.Context, q command.EvidenceQuery) ([]evidence.Item, error) {
	if !storable(q.Tenant) || !storable(q.Key) || !storable(q.CommandID) {
		return nil, nil
	}
	query, args := s.evidenceQuery(q)
	var items []evidence.Item
	err := s.rows(ctx, query, args, func(rows *sql.Rows) error {
		var (
			seq  int64
			line []byte
		)
		if err := rows.Scan(&seq, &line); err != nil {
			return err
		}
		it, err := evidence.Parse(line)
		if err != nil {
			return fmt.Errorf("item %d is damaged: %w", seq, err)
		}
		items = append(items, it)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list evidence of %s: %w", q.Tenant, err)
	}
	return items, nil
}

// evidenceQuery asks for a command by two indexes, each of which gives its first items in order.
func (s *Store) evidenceQuery(q command.EvidenceQuery) (string, []any) {
	where, args := "tenant = $1 AND seq > $2", []any{q.Tenant, q.After}
	end := " ORDER BY seq"
	if q.Key != "" {
		args = append(args, q.Key)
		where += fmt.Sprintf(" AND key = $%d AND key <> ''", len(args))
	}
	if q.Limit > 0 {
		end += fmt.Sprintf(" LIMIT %d", q.Limit)
	}
	selected := "SELECT seq, line FROM ~evidence_items WHERE " + where
	if q.CommandID == "" {
		return s.in(selected + end), args
	}
	args = append(args, q.CommandID)
	parts := []string{
		selected + fmt.Sprintf(" AND command_id = $%d AND command_id <> ''", len(args)),
		selected + fmt.Sprintf(" AND submitted_id = $%d AND submitted_id <> '' AND submitted_id <> command_id", len(args)),
	}
	for i, part := range parts {
		parts[i] = fmt.Sprintf("SELECT seq, line FROM (%s%s) AS part%d", part, end, i)
	}
	return s.in(strings.Join(parts, " UNION ALL ") + end), args
}
