package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/godwit-hq/godwit/internal/store"
)

// A conn is one connection with its prepared statements. One goroutine uses it at a time.
type conn struct {
	raw   driver.Conn
	stmts map[string]*stmt
}

// busyTimeout is how long a write waits for another process, such as an administration command, to finish its own.
const busyTimeout = 5 * time.Second

// connect opens a connection with the common settings and those in more.
func connect(ctx context.Context, path string, more ...string) (*conn, error) {
	pragmas := append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"synchronous(FULL)",
		"wal_autocheckpoint(0)", // the checkpointer does it, so that no commit waits for one
		"temp_store(MEMORY)",
		"trusted_schema(OFF)",
	}, more...)
	q := url.Values{"_pragma": pragmas, "_dqs": {"0"}, "_error_rc": {"1"}}
	name := (&url.URL{Scheme: "file", Opaque: escapePath(path), RawQuery: q.Encode()}).String()
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, fault(err))
	}
	return &conn{raw: raw, stmts: map[string]*stmt{}}, nil
}

// escapePath escapes a file name for a URI.
func escapePath(path string) string {
	if filepath.VolumeName(path) != "" {
		path = "/" + path
	}
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		s.raw.Close()
	}
	return c.raw.Close()
}

// stmt returns the prepared statement of a query. Callers must use a bounded set of queries.
func (c *conn) stmt(query string) (*stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	raw, err := c.raw.Prepare(query)
	if err != nil {
		return nil, err
	}
	execer, ok1 := raw.(driver.StmtExecContext)
	queryer, ok2 := raw.(driver.StmtQueryContext)
	if !ok1 || !ok2 {
		raw.Close()
		return nil, errors.New("the SQLite driver has no statements with context")
	}
	s := &stmt{raw: raw, execer: execer, queryer: queryer}
	c.stmts[query] = s
	return s, nil
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(query string, args ...driver.Value) (int64, error) {
	s, err := c.stmt(query)
	if err != nil {
		return 0, err
	}
	return s.exec(args...)
}

// script runs statements without keeping them prepared.
func (c *conn) script(text string) error {
	execer, ok := c.raw.(driver.ExecerContext)
	if !ok {
		return errors.New("the SQLite driver does not run scripts")
	}
	_, err := execer.ExecContext(context.Background(), text, nil)
	return err
}

// query runs a statement that returns rows. The context is checked only until the first row.
func (c *conn) query(ctx context.Context, query string, args ...driver.Value) (*rows, error) {
	s, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	return s.query(ctx, args...)
}

// each calls fn with every row of a query.
func (c *conn) each(ctx context.Context, query string, args []driver.Value, fn func(*rows) error) error {
	r, err := c.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer r.close()
	for r.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return r.err
}

// one calls fn with the first row of a query and reports whether there was one.
func (c *conn) one(ctx context.Context, query string, args []driver.Value, fn func(*rows)) (bool, error) {
	r, err := c.query(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer r.close()
	if !r.next() {
		return false, r.err
	}
	if fn != nil {
		fn(r)
	}
	return true, nil
}

// first calls fn with the first row of a query, or returns store.ErrNotFound if there is none.
func (c *conn) first(ctx context.Context, query string, args []driver.Value, fn func(*rows) error) error {
	var err error
	ok, qerr := c.one(ctx, query, args, func(r *rows) { err = fn(r) })
	if qerr != nil {
		return qerr
	}
	if !ok {
		return store.ErrNotFound
	}
	return err
}

// A stmt is a prepared statement. It reuses its arguments, so that running it allocates little.
type stmt struct {
	raw     driver.Stmt
	execer  driver.StmtExecContext
	queryer driver.StmtQueryContext
	args    []driver.NamedValue
}

func (s *stmt) bind(args []driver.Value) {
	for i, v := range args {
		if i == len(s.args) {
			s.args = append(s.args, driver.NamedValue{Ordinal: i + 1})
		}
		s.args[i].Value = v
	}
	s.args = s.args[:len(args)]
}

func (s *stmt) exec(args ...driver.Value) (int64, error) {
	s.bind(args)
	// A cancellable context would make the driver start a goroutine for every row.
	r, err := s.execer.ExecContext(context.Background(), s.args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// insert runs a statement that adds rows, and returns their number and the rowid of the last one.
func (s *stmt) insert(args []driver.Value) (last, changed int64, err error) {
	s.bind(args)
	r, err := s.execer.ExecContext(context.Background(), s.args)
	for i := range s.args {
		s.args[i].Value = nil // release bodies, which may be large
	}
	if err != nil {
		return 0, 0, err
	}
	if changed, err = r.RowsAffected(); err == nil {
		last, err = r.LastInsertId()
	}
	return last, changed, err
}

func (s *stmt) query(ctx context.Context, args ...driver.Value) (*rows, error) {
	s.bind(args)
	r, err := s.queryer.QueryContext(ctx, s.args)
	if err != nil {
		return nil, err
	}
	return &rows{raw: r, v: make([]driver.Value, len(r.Columns()))}, nil
}

// rows reads the columns of a query by position.
type rows struct {
	raw driver.Rows
	v   []driver.Value
	err error
}

func (r *rows) next() bool {
	err := r.raw.Next(r.v)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return err == nil
}

func (r *rows) close() { r.raw.Close() }

func (r *rows) int(i int) int64      { n, _ := r.v[i].(int64); return n }
func (r *rows) float(i int) float64  { f, _ := r.v[i].(float64); return f }
func (r *rows) text(i int) string    { s, _ := r.v[i].(string); return s }
func (r *rows) blob(i int) []byte    { b, _ := r.v[i].([]byte); return b }
func (r *rows) bool(i int) bool      { return r.int(i) != 0 }
func (r *rows) time(i int) time.Time { return fromMicros(r.int(i)) }

// id reads the 16 bytes of an id.
func (r *rows) id(i int) [16]byte {
	var id [16]byte
	copy(id[:], r.blob(i))
	return id
}

// hash reads 32 bytes.
func (r *rows) hash(i int) [32]byte {
	var h [32]byte
	copy(h[:], r.blob(i))
	return h
}
