package sqlite

import (
	"database/sql/driver"
	"strings"
)

// bulkRows is how many rows one statement inserts, if there are as many. Starting and ending a statement costs a third of a
// row; more rows per statement gain nothing.
const bulkRows = 10

// A bulk is an INSERT in two forms: for one row and for bulkRows.
type bulk struct {
	width     int
	one, many string
}

func newBulk(into string, width int, more string) *bulk {
	row := "(?" + strings.Repeat(", ?", width-1) + ")"
	return &bulk{
		width: width,
		one:   "INSERT INTO " + into + " VALUES " + row + more,
		many:  "INSERT INTO " + into + " VALUES " + row + strings.Repeat(", "+row, bulkRows-1) + more,
	}
}

// insert stores one row or bulkRows rows. It returns the number of new rows, and the rowid of the last one.
func (b *bulk) insert(c *conn, args []driver.Value) (last, changed int64, err error) {
	query := b.one
	if len(args) > b.width {
		query = b.many
	}
	s, err := c.stmt(query)
	if err != nil {
		return 0, 0, err
	}
	return s.insert(args)
}

// An inserter collects rows, and stores them in bulk. The caller must flush the rest.
type inserter struct {
	*bulk
	c    *conn
	args []driver.Value
}

// added is called after each row that is appended to args.
func (i *inserter) added() error {
	if len(i.args) < bulkRows*i.width {
		return nil
	}
	_, _, err := i.insert(i.c, i.args)
	i.args = i.args[:0]
	return err
}

func (i *inserter) flush() error {
	for at := 0; at < len(i.args); at += i.width {
		if _, _, err := i.insert(i.c, i.args[at:at+i.width]); err != nil {
			return err
		}
	}
	i.args = i.args[:0]
	return nil
}
