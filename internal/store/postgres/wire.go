package postgres

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/godwit-hq/godwit/internal/store"
)

// The hot statements take one array for each column and unnest them. This file writes the arrays in PostgreSQL's binary format
// directly: the driver's generic codecs examine every element by reflection, which costs more than the server needs to store
// it.

// parameters collects the values of one statement in one buffer.
type parameters struct {
	buf    []byte
	starts []int    // start of each value; nullStart for null
	list   [][]byte // reused by values
}

func (p *parameters) reset() {
	p.buf, p.starts = p.buf[:0], p.starts[:0]
}

// nullStart marks a null parameter.
const nullStart = -1

// values returns the parameters in the driver's form. They are valid until the next reset.
func (p *parameters) values() [][]byte {
	p.list = p.list[:0]
	end := len(p.buf)
	for _, start := range slices.Backward(p.starts) {
		if start == nullStart {
			p.list = append(p.list, nil)
			continue
		}
		p.list = append(p.list, p.buf[start:end:end])
		end = start
	}
	slices.Reverse(p.list)
	return p.list
}

// array begins an array parameter of n elements.
func (p *parameters) array(element uint32, n int) {
	p.starts = append(p.starts, len(p.buf))
	b := p.buf
	b = binary.BigEndian.AppendUint32(b, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 1) // may hold nulls
	b = binary.BigEndian.AppendUint32(b, element)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	p.buf = binary.BigEndian.AppendUint32(b, 1) // lower bound
}

func (p *parameters) null() { p.buf = append(p.buf, 0xff, 0xff, 0xff, 0xff) }

func (p *parameters) id(id [16]byte) {
	p.buf = append(p.buf, 0, 0, 0, 16)
	p.buf = append(p.buf, id[:]...)
}

// optionalID stores the zero id as null.
func (p *parameters) optionalID(id [16]byte) {
	if id == ([16]byte{}) {
		p.null()
		return
	}
	p.id(id)
}

func (p *parameters) int8(v int64) {
	p.buf = append(p.buf, 0, 0, 0, 8)
	p.buf = binary.BigEndian.AppendUint64(p.buf, uint64(v))
}

func (p *parameters) int4(v int) {
	p.buf = append(p.buf, 0, 0, 0, 4)
	p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(int32(v)))
}

func (p *parameters) int2(v int) {
	p.buf = append(p.buf, 0, 0, 0, 2)
	p.buf = binary.BigEndian.AppendUint16(p.buf, uint16(int16(v)))
}

func (p *parameters) bool(v bool) {
	p.buf = append(p.buf, 0, 0, 0, 1, 0)
	if v {
		p.buf[len(p.buf)-1] = 1
	}
}

// time stores the zero time as null.
func (p *parameters) time(t time.Time) {
	if t.IsZero() {
		p.null()
		return
	}
	p.int8(t.UnixMicro() - epochMicros)
}

func (p *parameters) text(s string) {
	s = clean(s)
	p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(len(s)))
	p.buf = append(p.buf, s...)
}

// optionalText stores the empty text as null.
func (p *parameters) optionalText(s string) {
	if s == "" {
		p.null()
		return
	}
	p.text(s)
}

func (p *parameters) bytes(b []byte) {
	p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(len(b)))
	p.buf = append(p.buf, b...)
}

func (p *parameters) deliveryIDs(list []store.NewDelivery) {
	p.buf = binary.BigEndian.AppendUint32(p.buf, uint32(16*len(list)))
	for i := range list {
		p.buf = append(p.buf, list[i].ID[:]...)
	}
}

// optionalBytes stores nil as null.
func (p *parameters) optionalBytes(b []byte) {
	if b == nil {
		p.null()
		return
	}
	p.bytes(b)
}

func (p *parameters) float8(v float64) { p.int8(int64(math.Float64bits(v))) }

// Scalars add a parameter that is not an array.
func (p *parameters) scalarInt8(v int64) {
	p.starts = append(p.starts, len(p.buf))
	p.buf = binary.BigEndian.AppendUint64(p.buf, uint64(v))
}

func (p *parameters) scalarTime(t time.Time) { p.scalarInt8(t.UnixMicro() - epochMicros) }

// optionalScalarTime is null for the zero time.
func (p *parameters) optionalScalarTime(t time.Time) {
	if t.IsZero() {
		p.starts = append(p.starts, nullStart)
		return
	}
	p.scalarTime(t)
}

func (p *parameters) scalarID(id [16]byte) {
	p.starts = append(p.starts, len(p.buf))
	p.buf = append(p.buf, id[:]...)
}

func (p *parameters) scalarText(s string) {
	p.starts = append(p.starts, len(p.buf))
	p.buf = append(p.buf, clean(s)...)
}

func (p *parameters) scalarBytes(b []byte) {
	p.starts = append(p.starts, len(p.buf))
	p.buf = append(p.buf, b...)
}

// Types of array elements.
const (
	typeID    = pgtype.UUIDOID
	typeInt8  = pgtype.Int8OID
	typeInt4  = pgtype.Int4OID
	typeInt2  = pgtype.Int2OID
	typeBool  = pgtype.BoolOID
	typeFloat = pgtype.Float8OID
	typeTime  = pgtype.TimestamptzOID
	typeText  = pgtype.TextOID
	typeBytes = pgtype.ByteaOID
	typeJSON  = pgtype.JSONOID
)

// epochMicros is PostgreSQL's time zero, 2000-01-01, in Unix microseconds.
const epochMicros = 946684800_000_000

// clean makes a string storable as text: PostgreSQL accepts neither NUL nor invalid UTF-8, and a receiver's answer may contain
// both. A batch with such text would fail at every repetition.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// A row reads the binary values of one result row, in the order of its columns.
type row struct {
	values [][]byte
	next   int
}

func (r *row) raw() []byte {
	v := r.values[r.next]
	r.next++
	return v
}

func (r *row) id(dst *[16]byte) { copy(dst[:], r.raw()) }
func (r *row) text() string     { return string(r.raw()) }
func (r *row) bytes() []byte    { return bytes.Clone(r.raw()) } // the driver reuses its buffer
func (r *row) int4() int        { return int(int32(binary.BigEndian.Uint32(r.raw()))) }
func (r *row) int8() int64      { return int64(binary.BigEndian.Uint64(r.raw())) }
func (r *row) bool() bool       { return r.raw()[0] != 0 }

func (r *row) time() time.Time {
	v := r.raw()
	if v == nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(v)) + epochMicros).UTC()
}
