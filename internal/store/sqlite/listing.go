package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A listing is a query for a page of a list, newest first.
type listing struct {
	from  string
	id    string
	then  string // further terms of the order
	conds []string
	args  []driver.Value
	limit int
}

func newest(from, id string, p store.Page) *listing {
	q := &listing{from: from, id: id, limit: p.Limit}
	if p.After != [16]byte{} {
		q.where(id+" < ?", p.After[:])
	}
	return q
}

// ofEnvironment is a query for what the tenants of an environment have. CROSS JOIN makes SQLite walk the table by id, so that a page
// costs no sort.
func ofEnvironment(from, table string, e godwit.EnvironmentID, p store.Page) *listing {
	q := newest(from+" CROSS JOIN tenants t ON t.id = "+table+".tenant_id", table+".id", p)
	q.where("t.environment_id = ? AND t.deleted_at = 0 AND "+table+".status <> 'deleted'", e[:])
	return q
}

func (q *listing) where(cond string, args ...driver.Value) {
	q.conds = append(q.conds, cond)
	q.args = append(q.args, args...)
}

// slack is how far an id's time may be from its row's creation time.
const slack = time.Minute

// created bounds the creation time. The bounds on the id are redundant, but let SQLite search the index by range.
func (q *listing) created(table string, since, until time.Time) {
	var first func(time.Time) godwit.EventID = godwit.FirstIDAt
	if !since.IsZero() {
		id := first(since.Add(-slack))
		q.where(table+".created_at >= ? AND "+q.id+" >= ?", micros(since), id[:])
	}
	if !until.IsZero() {
		id := first(until.Add(slack))
		q.where(table+".created_at < ? AND "+q.id+" < ?", micros(until), id[:])
	}
}

func (q *listing) text() string {
	return q.from + " WHERE " + strings.Join(q.conds, " AND ") + " ORDER BY " + q.id + " DESC" + q.then + " LIMIT ?"
}

func (q *listing) arguments() []driver.Value { return append(q.args, int64(max(q.limit, 0))) }

func (q *listing) each(ctx context.Context, c *conn, fn func(*rows) error) error {
	return c.each(ctx, q.text(), q.arguments(), fn)
}
