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

// lockHeads serialises the transactions of a tenant, so that their reads stay valid until they end. Its first statement
// writes: in SQLite the transaction is then a writer before it reads any data that another could change. It creates all
// heads before it locks any, and locks them in order, so that transactions cannot deadlock.
func (t *transaction) lockHeads(ctx context.Context, tenants []string) (map[string]evidence.Head, error) {
	tenants = slices.Sorted(slices.Values(tenants))
	for _, tenant := range tenants {
		if err := t.run(ctx, t.s.makeHead, tenant); err != nil {
			return nil, err
		}
	}
	heads := make(map[string]evidence.Head, len(tenants))
	for _, tenant := range tenants {
		head, err := scanHead(t.tx.QueryRowContext(ctx, t.s.lockHead, tenant).Scan)
		if err != nil {
			return nil, err
		}
		heads[tenant] = head
	}
	return heads, nil
}

// appendEvidence stores new items and the heads of their chains.
func (t *transaction) appendEvidence(ctx context.Context, items []evidence.Item, heads []evidence.Head) error {
	for i := range items {
		it := &items[i]
		err := t.run(ctx, t.s.insertItem, it.Tenant, it.Seq, it.Key, it.CommandID, it.SubmittedID, it.Hash, evidence.Line(it))
		if err != nil {
			return err
		}
	}
	for _, h := range heads {
		if err := t.run(ctx, t.s.moveHead, h.Seq, h.Hash, micros(h.At), h.Tenant); err != nil {
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

// errEnough ends a search whose limit is reached.
var errEnough = errors.New("enough")

// Evidence lists a tenant's evidence, oldest first. Targets have no index here: a search by target reads the chain.
func (s *Store) Evidence(ctx context.Context, q command.EvidenceQuery) ([]evidence.Item, error) {
	if !storable(q.Tenant) || !storable(q.Key) || !storable(q.CommandID) || !storable(q.Target) {
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
		if q.Target != "" && it.Target != q.Target {
			return nil
		}
		items = append(items, it)
		if q.Target != "" && len(items) == q.Limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("list evidence of %s: %w", q.Tenant, err)
	}
	return items, nil
}

// evidenceQuery looks up a command in two indexes, each of which returns its first items in order.
func (s *Store) evidenceQuery(q command.EvidenceQuery) (string, []any) {
	where, args := "tenant = $1 AND seq > $2", []any{q.Tenant, q.After}
	end := " ORDER BY seq"
	if q.Key != "" {
		args = append(args, q.Key)
		where += fmt.Sprintf(" AND key = $%d AND key <> ''", len(args))
	}
	if q.Limit > 0 && q.Target == "" {
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
