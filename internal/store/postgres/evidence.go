package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

// A transaction locks heads before anything else, in the order of their tenants, after it has created missing ones. So a
// transaction that holds a head never waits for an earlier one, and two transactions of a tenant never lock other rows at the
// same time.
var (
	makeHeads = prepared("heads_make", `INSERT INTO evidence_heads (tenant, seq, hash) SELECT unnest($1::text[]), 0, ''
		ON CONFLICT DO NOTHING`)
	lockHeads = prepared("heads_lock", `SELECT tenant, seq, hash, at FROM evidence_heads WHERE tenant = ANY ($1::text[])
		ORDER BY tenant FOR UPDATE`)
	moveHeads = prepared("heads_move", `UPDATE evidence_heads AS h SET seq = n.seq, hash = n.hash, at = n.at
		FROM `+rows(1, "tenant text", "seq int8", "hash text", "at timestamptz")+` AS n WHERE h.tenant = n.tenant`)
	moveAssumedHeads = prepared("heads_move_assumed", `WITH moved AS (
			UPDATE evidence_heads AS h SET seq = n.seq, hash = n.hash, at = n.at
			FROM `+rows(1, "tenant text", "seq int8", "hash text", "at timestamptz", "was_seq int8", "was_hash text")+` AS n
			WHERE h.tenant = n.tenant AND h.seq = n.was_seq AND h.hash = n.was_hash RETURNING 1)
		SELECT expect(count(*), $7, '`+stateRecordMoved+`') FROM moved`)
	insertEvidence = prepared("evidence", insert("evidence_items",
		"tenant text", "seq int8", "key text", "command_id text", "submitted_id text", "target text", "hash text", "line bytea"))
)

// errUnlinked reports evidence that cannot be appended: it is not valid, or the chain's head was tampered with.
var errUnlinked = errors.New("evidence cannot be linked")

// addLock locks the heads of tenants, which are sorted and unique, and reads them into a map.
func addLock(p *pipeline, tenants []string, heads map[string]evidence.Head) {
	a := p.begin()
	column(a, typeText, tenants, func(tenant string) { a.text(tenant) })
	p.add(makeHeads, nil)
	p.add(lockHeads, func(r *row) {
		h := evidence.Head{Tenant: r.text(), Seq: r.int8(), Hash: r.text(), At: r.time()}
		heads[h.Tenant] = h
	})
}

// addHeadLock locks heads that exist.
func addHeadLock(p *pipeline, tenants []string) {
	a := p.begin()
	column(a, typeText, tenants, func(tenant string) { a.text(tenant) })
	p.add(lockHeads, nil)
}

// addEvidence stores new items.
func addEvidence(p *pipeline, items []evidence.Item) {
	if len(items) == 0 {
		return
	}
	a := p.begin()
	column(a, typeText, items, func(i evidence.Item) { a.text(i.Tenant) })
	column(a, typeInt8, items, func(i evidence.Item) { a.int8(i.Seq) })
	column(a, typeText, items, func(i evidence.Item) { a.optionalText(i.Key) })
	column(a, typeText, items, func(i evidence.Item) { a.optionalText(i.CommandID) })
	column(a, typeText, items, func(i evidence.Item) {
		if i.SubmittedID == i.CommandID {
			a.null() // the index of commands contains it
		} else {
			a.optionalText(i.SubmittedID)
		}
	})
	column(a, typeText, items, func(i evidence.Item) { a.optionalText(i.Target) })
	column(a, typeText, items, func(i evidence.Item) { a.text(i.Hash) })
	column(a, typeBytes, items, func(i evidence.Item) { a.bytes(evidence.Line(&i)) })
	p.add(insertEvidence, nil)
}

// addHeads moves the heads of chains that have grown.
func addHeads(p *pipeline, heads []evidence.Head) {
	if len(heads) > 0 {
		headColumns(p.begin(), heads)
		p.add(moveHeads, nil)
	}
}

// addAssumedHeads moves heads that are still as they were, and fails the transaction if one is not.
func addAssumedHeads(p *pipeline, heads []evidence.Head, were map[string]evidence.Head) {
	if len(heads) == 0 {
		return
	}
	a := p.begin()
	headColumns(a, heads)
	column(a, typeInt8, heads, func(h evidence.Head) { a.int8(were[h.Tenant].Seq) })
	column(a, typeText, heads, func(h evidence.Head) { a.text(were[h.Tenant].Hash) })
	a.scalarInt8(int64(len(heads)))
	p.add(moveAssumedHeads, nil)
}

func headColumns(a *parameters, heads []evidence.Head) {
	column(a, typeText, heads, func(h evidence.Head) { a.text(h.Tenant) })
	column(a, typeInt8, heads, func(h evidence.Head) { a.int8(h.Seq) })
	column(a, typeText, heads, func(h evidence.Head) { a.text(h.Hash) })
	column(a, typeTime, heads, func(h evidence.Head) { a.time(h.At) })
}

// lockHeads locks the heads of the chains that a batch appends to, after the command first if there is one.
func (c *commit) lockHeads(ctx context.Context, conn *pgconn.PgConn, first string) error {
	if len(c.batch.Evidence) == 0 {
		return nil
	}
	p := newPipeline(ctx, conn)
	if first != "" {
		p.command(first)
	}
	tenants := make([]string, len(c.batch.Evidence))
	for i := range c.batch.Evidence {
		tenants[i] = c.batch.Evidence[i].TenantID.String()
	}
	heads := map[string]evidence.Head{}
	c.chains = evidence.NewChains(heads)
	addLock(p, sorted(tenants), heads)
	return p.run()
}

// linkEvidence links the evidence of a batch, except for entries about refused results.
func (c *commit) linkEvidence() error {
	for i := range c.batch.Evidence {
		n := &c.batch.Evidence[i]
		if slices.Contains(c.fenced, n.Result) {
			continue
		}
		if err := c.chains.Link(n.TenantID.String(), n.Entry); err != nil {
			return fmt.Errorf("%w: %w", errUnlinked, err)
		}
	}
	return nil
}

// sorted sorts tenants into the locking order of heads.
func sorted(tenants []string) []string {
	slices.Sort(tenants)
	return slices.Compact(tenants)
}

// chains keeps the evidence of each tenant as a chain.
type chains struct{ *database }

// Evidence lists a tenant's evidence, oldest first.
func (s *chains) Evidence(ctx context.Context, q command.EvidenceQuery) ([]evidence.Item, error) {
	sql, args := evidenceQuery(q)
	r, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, failed("list evidence", err)
	}
	list, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (evidence.Item, error) {
		var seq int64
		var line []byte
		if err := r.Scan(&seq, &line); err != nil {
			return evidence.Item{}, err
		}
		item, err := evidence.Parse(line)
		if err != nil {
			return item, fmt.Errorf("item %d: %w", seq, err)
		}
		return item, nil
	})
	return list, failed("list evidence", err)
}

// evidenceQuery finds a command through two indexes, each of which returns its first items in order.
func evidenceQuery(q command.EvidenceQuery) (string, []any) {
	var w where
	w.add("tenant = ?", clean(q.Tenant))
	w.add("seq > ?", q.After)
	if q.Key != "" {
		w.add("key = ?", clean(q.Key))
	}
	if q.Target != "" {
		w.add("target = ?", clean(q.Target))
	}
	limit := ""
	if q.Limit > 0 {
		limit = fmt.Sprintf(" LIMIT %d", q.Limit)
	}
	end := " ORDER BY seq" + limit
	if q.CommandID == "" {
		return `SELECT seq, line FROM evidence_items` + w.sql() + end, w.args
	}
	w.add("command_id = ?", clean(q.CommandID))
	original := `SELECT seq, line FROM evidence_items` + w.sql() + end
	w.terms[len(w.terms)-1] = strings.Replace(w.terms[len(w.terms)-1], "command_id", "submitted_id", 1)
	submitted := `SELECT seq, line FROM evidence_items` + w.sql() + end
	return `SELECT seq, line FROM ((` + original + `) UNION ALL (` + submitted + `)) AS either` + end, w.args
}

// EvidenceHead returns the last link of a tenant's chain.
func (s *chains) EvidenceHead(ctx context.Context, tenant string) (evidence.Head, error) {
	r, err := s.pool.Query(ctx, `SELECT tenant, seq, hash, at FROM evidence_heads WHERE tenant = $1 AND seq > 0`, clean(tenant))
	if err != nil {
		return evidence.Head{}, failed("read head of evidence", err)
	}
	head, err := pgx.CollectExactlyOneRow(r, scanHead)
	if errors.Is(err, pgx.ErrNoRows) {
		return evidence.Head{}, nil
	}
	return head, failed("read head of evidence", err)
}

// EvidenceHeads lists the heads of all chains by tenant.
func (s *chains) EvidenceHeads(ctx context.Context, after string, limit int) ([]evidence.Head, error) {
	r, err := s.pool.Query(ctx, `SELECT tenant, seq, hash, at FROM evidence_heads WHERE tenant > $1 AND seq > 0 ORDER BY tenant LIMIT $2`,
		clean(after), max(limit, 0))
	if err != nil {
		return nil, failed("list heads of evidence", err)
	}
	list, err := pgx.CollectRows(r, scanHead)
	return list, failed("list heads of evidence", err)
}

func scanHead(r pgx.CollectableRow) (evidence.Head, error) {
	var h evidence.Head
	err := r.Scan(&h.Tenant, &h.Seq, &h.Hash, scanTime(&h.At))
	return h, err
}
