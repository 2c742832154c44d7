package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// A statement is prepared on every hot connection when it opens.
type statement struct {
	name string
	sql  string
}

// hotStatements is filled where they are written.
var hotStatements []*statement

func prepared(name, sql string) *statement {
	st := &statement{name: "godwit_" + name, sql: sql}
	hotStatements = append(hotStatements, st)
	return st
}

// insert writes the INSERT of many rows from one array for each column, given as "name type". Unnesting in the select
// list costs half of what unnesting in FROM does.
func insert(table string, columns ...string) string {
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], _, _ = strings.Cut(c, " ")
		values[i] = unnest(i+1, c)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s", table, strings.Join(names, ", "), strings.Join(values, ", "))
}

// rows writes a subselect of many rows from one array for each column, beginning with parameter $first.
func rows(first int, columns ...string) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		name, _, _ := strings.Cut(c, " ")
		values[i] = unnest(first+i, c) + " AS " + name
	}
	return "(SELECT " + strings.Join(values, ", ") + ")"
}

func unnest(n int, column string) string {
	_, kind, _ := strings.Cut(column, " ")
	return fmt.Sprintf("unnest($%d::%s[])", n, kind)
}

// names lists the names of columns given as "name type".
func names(columns []string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i], _, _ = strings.Cut(c, " ")
	}
	return strings.Join(list, ", ")
}

// replace writes the DO UPDATE that takes over all columns of the new row.
func replace(columns []string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		name, _, _ := strings.Cut(c, " ")
		list[i] = "excluded." + name
	}
	return fmt.Sprintf("DO UPDATE SET (%s) = ROW(%s)", names(columns), strings.Join(list, ", "))
}

// prepareHot prepares all hot statements in one round trip and keeps their descriptions with the connection.
func prepareHot(ctx context.Context, conn *pgconn.PgConn) error {
	pipeline := conn.StartPipeline(ctx)
	for _, st := range hotStatements {
		pipeline.SendPrepare(st.name, st.sql, nil)
	}
	if err := pipeline.Sync(); err != nil {
		pipeline.Close()
		return err
	}
	described := make(map[*statement]*pgconn.StatementDescription, len(hotStatements))
	for _, st := range hotStatements {
		result, err := pipeline.GetResults()
		if err != nil {
			pipeline.Close()
			return fmt.Errorf("prepare %s: %w", st.name, err)
		}
		description, ok := result.(*pgconn.StatementDescription)
		if !ok {
			pipeline.Close()
			return fmt.Errorf("prepare %s: the driver answered with %T", st.name, result)
		}
		description.Name, description.SQL = st.name, st.sql // in a pipeline the driver leaves them out
		described[st] = description
	}
	conn.CustomData()[descriptions] = described
	return pipeline.Close()
}

const descriptions = "godwit"

// A pipeline gathers statements that run as one transaction in one round trip.
type pipeline struct {
	described map[*statement]*pgconn.StatementDescription
	batch     pgconn.Batch
	readers   []func(*row) // one for each statement; nil where rows do not matter
	params    parameters
}

func newPipeline(conn *pgconn.PgConn) *pipeline {
	described, _ := conn.CustomData()[descriptions].(map[*statement]*pgconn.StatementDescription)
	return &pipeline{described: described}
}

var binaryFormat = []int16{1}

// begin clears the parameters for the next statement.
func (p *pipeline) begin() *parameters {
	p.params.reset()
	return &p.params
}

// add queues the statement with the parameters as they stand.
func (p *pipeline) add(st *statement, read func(*row)) {
	p.batch.ExecStatement(p.described[st], p.params.values(), binaryFormat, binaryFormat)
	p.readers = append(p.readers, read)
}

// run sends everything and reads all answers. Unless a transaction is open on the connection, the statements are one.
func (p *pipeline) run(ctx context.Context, conn *pgconn.PgConn) error {
	if len(p.readers) == 0 {
		return ctx.Err()
	}
	results := conn.ExecBatch(ctx, &p.batch)
	last := len(p.readers) - 1
	for ; last >= 0 && p.readers[last] == nil; last-- { // Close reads the rest faster
	}
	for _, read := range p.readers[:last+1] {
		eachRow(results, func(r *row) {
			if read != nil {
				read(r)
			}
		})
	}
	return results.Close() // the commit is behind the last statement: its outcome is known only here
}
