package postgres

import (
	"cmp"
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

// hotStatements lists all statements made by prepared.
var hotStatements []*statement

func prepared(name, sql string) *statement {
	st := &statement{name: "godwit_" + name, sql: sql}
	hotStatements = append(hotStatements, st)
	return st
}

// insert returns an INSERT of many rows from one array for each column, given as "name type". Unnesting in the select list
// costs half as much as unnesting in FROM.
func insert(table string, columns ...string) string {
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], _, _ = strings.Cut(c, " ")
		values[i] = unnest(i+1, c)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s", table, strings.Join(names, ", "), strings.Join(values, ", "))
}

// rows returns a subselect of many rows from one array for each column, starting with parameter $first.
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
	return prefixed("", columns)
}

// prefixed lists the names of columns given as "name type", each after a prefix.
func prefixed(prefix string, columns []string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		name, _, _ := strings.Cut(c, " ")
		list[i] = prefix + name
	}
	return strings.Join(list, ", ")
}

// replace returns a DO UPDATE that sets all columns from the new row.
func replace(columns []string) string {
	return fmt.Sprintf("DO UPDATE SET (%s) = ROW(%s)", names(columns), prefixed("excluded.", columns))
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
	state := &connState{described: make(map[*statement]*pgconn.StatementDescription, len(hotStatements))}
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
		description.Name, description.SQL = st.name, st.sql // in a pipeline the driver leaves them empty
		state.described[st] = description
	}
	conn.CustomData()[connStateKey] = state
	return pipeline.Close()
}

const connStateKey = "godwit"

// A connState holds the state that a hot connection keeps between pipelines: its statements, and buffers that have grown to the
// size of its batches.
type connState struct {
	described map[*statement]*pgconn.StatementDescription
	params    parameters
	outgoing  []byte
}

// maxOutgoing is the size above which a buffer is not kept.
const maxOutgoing = 4 << 20

// A pipeline gathers statements that run as one transaction in one round trip.
type pipeline struct {
	*connState
	conn    *pgconn.PgConn
	wire    *pgconn.Pipeline
	readers []func(*row) // one for each statement; nil to ignore rows
	unsent  int
}

// newPipeline starts a pipeline on a hot connection. The caller must call run.
func newPipeline(ctx context.Context, conn *pgconn.PgConn) *pipeline {
	state, _ := conn.CustomData()[connStateKey].(*connState)
	p := &pipeline{connState: state, conn: conn, wire: conn.StartPipeline(ctx)}
	conn.Frontend().Send(&lend{state})
	return p
}

var binaryFormat = []int16{1}

// begin clears the parameters for the next statement.
func (p *pipeline) begin() *parameters {
	p.params.reset()
	return &p.params
}

// add queues the statement with the current parameters.
func (p *pipeline) add(st *statement, read func(*row)) {
	p.wire.SendQueryStatement(p.described[st], p.params.values(), binaryFormat, binaryFormat)
	p.readers = append(p.readers, read)
	if p.unsent += len(p.params.buf); p.unsent > largeStatement {
		p.unsent = 0
		if err := p.wire.Flush(); err != nil { // the pipeline is closed now, and run returns the reason
			return
		}
	}
}

// command queues a command without parameters, rows and planning: to begin or end a transaction.
func (p *pipeline) command(sql string) {
	p.wire.SendQueryParams(sql, nil, nil, nil, nil)
	p.readers = append(p.readers, nil)
}

// largeStatement bounds the size of one statement, and of the data buffered before it is sent.
const largeStatement = 8 << 20

// run sends everything and reads all answers. Unless a transaction is open on the connection, all statements form one
// transaction.
func (p *pipeline) run() error {
	p.conn.Frontend().Send(&keep{p.connState})
	if err := p.wire.Sync(); err != nil {
		p.wire.Close()
		return err
	}
	var failure error
	for _, read := range p.readers {
		result, err := p.wire.GetResults()
		if err != nil {
			failure = err
			break
		}
		if reader, ok := result.(*pgconn.ResultReader); ok && read != nil {
			for reader.NextRow() {
				read(&row{values: reader.Values()})
			}
		}
	}
	return cmp.Or(failure, p.wire.Close()) // the commit follows the last statement: its outcome is known only here
}

// The driver drops its send buffer after a large message, so that each batch would have to grow a new one. Two empty messages
// lend a kept buffer to the driver and take it back.
type (
	lend struct{ *connState }
	keep struct{ *connState }
)

// Encode implements pgproto3.FrontendMessage.
func (l *lend) Encode(dst []byte) ([]byte, error) {
	return append(l.outgoing[:0], dst...), nil
}

// Encode implements pgproto3.FrontendMessage.
func (k *keep) Encode(dst []byte) ([]byte, error) {
	k.outgoing = nil
	if cap(dst) <= maxOutgoing {
		k.outgoing = dst
	}
	if cap(k.params.buf) > maxOutgoing {
		k.params.buf = nil
	}
	return dst, nil
}

// Frontend implements pgproto3.FrontendMessage.
func (*lend) Frontend() {}

// Frontend implements pgproto3.FrontendMessage.
func (*keep) Frontend() {}

// Decode implements pgproto3.FrontendMessage.
func (*lend) Decode([]byte) error { return nil }

// Decode implements pgproto3.FrontendMessage.
func (*keep) Decode([]byte) error { return nil }
