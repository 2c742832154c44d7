package sqlite

import (
	"encoding/binary"
	"errors"
)

// A packer encodes values that are always read together into one column: numbers as varints, texts with their length in front.
// Separate columns would cost the hot path several times as much.
type packer []byte

func (p *packer) number(n int64) { *p = binary.AppendVarint(*p, n) }
func (p *packer) id(id [16]byte) { *p = append(*p, id[:]...) }
func (p *packer) text(s string)  { *p = append(binary.AppendUvarint(*p, uint64(len(s))), s...) }

var errPacked = errors.New("packed value is damaged")

// An unpacker decodes the output of a packer. For truncated input it returns zeros and sets err.
type unpacker struct {
	rest []byte
	err  error
}

func (u *unpacker) number() int64 {
	n, size := binary.Varint(u.rest)
	return u.skip(n, size)
}

func (u *unpacker) skip(n int64, size int) int64 {
	if size <= 0 {
		u.rest, u.err = nil, errPacked
		return 0
	}
	u.rest = u.rest[size:]
	return n
}

func (u *unpacker) take(n int64) []byte {
	if n < 0 || n > int64(len(u.rest)) {
		u.rest, u.err = nil, errPacked
		return nil
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

func (u *unpacker) id() (id [16]byte) {
	copy(id[:], u.take(16))
	return id
}

func (u *unpacker) text() string {
	n, size := binary.Uvarint(u.rest)
	return string(u.take(u.skip(int64(n), size)))
}
