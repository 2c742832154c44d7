package godwit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ID is a UUIDv7 with a kind. Stores keep its time-ordered bytes. Its text form carries a prefix, so that an id of the
// wrong kind is refused instead of not found.
type ID[K Kind] [16]byte

// Kind is what an id names. Only this package has kinds.
type Kind interface{ prefix() string }

type (
	tenantKind   struct{}
	keyKind      struct{}
	endpointKind struct{}
	secretKind   struct{}
	eventKind    struct{}
	deliveryKind struct{}
	attemptKind  struct{}
	noticeKind   struct{}

	sourceKind         struct{}
	acknowledgmentKind struct{}
	rejectionKind      struct{}
	commandKind        struct{}
	environmentKind    struct{}
	broadcastKind      struct{}
	sessionKind        struct{}
	linkKind           struct{}
	userKind           struct{}
)

func (tenantKind) prefix() string   { return "ten_" }
func (keyKind) prefix() string      { return "key_" }
func (endpointKind) prefix() string { return "sub_" }
func (secretKind) prefix() string   { return "sec_" }
func (eventKind) prefix() string    { return "evt_" }
func (deliveryKind) prefix() string { return "del_" }
func (attemptKind) prefix() string  { return "att_" }
func (noticeKind) prefix() string   { return "ntc_" }

func (sourceKind) prefix() string         { return "src_" }
func (acknowledgmentKind) prefix() string { return "ack_" }
func (rejectionKind) prefix() string      { return "rej_" }
func (commandKind) prefix() string        { return "cmd_" }
func (environmentKind) prefix() string    { return "env_" }
func (broadcastKind) prefix() string      { return "bct_" }
func (sessionKind) prefix() string        { return "ses_" }
func (linkKind) prefix() string           { return "lnk_" }
func (userKind) prefix() string           { return "usr_" }

// The kinds of id.
type (
	TenantID   = ID[tenantKind]
	KeyID      = ID[keyKind]
	EndpointID = ID[endpointKind]
	SecretID   = ID[secretKind]
	EventID    = ID[eventKind]
	DeliveryID = ID[deliveryKind]
	AttemptID  = ID[attemptKind]
	NoticeID   = ID[noticeKind]

	SourceID         = ID[sourceKind]
	AcknowledgmentID = ID[acknowledgmentKind]
	RejectionID      = ID[rejectionKind]
	CommandID        = ID[commandKind]
	EnvironmentID    = ID[environmentKind]
	BroadcastID      = ID[broadcastKind]
	SessionID        = ID[sessionKind]
	LinkID           = ID[linkKind]
	UserID           = ID[userKind]
)

// ErrBadID reports text that is not an id of the expected kind.
var ErrBadID = errors.New("not a valid id")

// NewID mints an id whose order follows now. Below the millisecond the order of two ids is random.
func NewID[K Kind](now time.Time) ID[K] {
	var id ID[K]
	Random(id[6:])
	stampV7(id[:], now)
	return id
}

// DerivedID returns the id that follows from now and the seed: the same for the same arguments, and as unlikely to meet another
// as a random one. The kind is part of the seed.
func DerivedID[K Kind](now time.Time, seed []byte) ID[K] {
	var id ID[K]
	var k K
	h := sha256.New()
	fmt.Fprintf(h, "%s %d ", k.prefix(), now.UnixMicro())
	h.Write(seed)
	copy(id[6:], h.Sum(nil))
	stampV7(id[:], now)
	return id
}

// FirstIDAt returns the smallest id minted at or after t. It turns a range of times into a range of ids.
func FirstIDAt[K Kind](t time.Time) ID[K] {
	var id ID[K]
	stampV7(id[:], t)
	return id
}

func stampV7(b []byte, now time.Time) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(now.UnixMilli(), 0)))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
}

// Time returns when the id was minted, to the millisecond.
func (id ID[K]) Time() time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
}

// IsZero reports whether the id is absent.
func (id ID[K]) IsZero() bool { return id == ID[K]{} }

func (id ID[K]) String() string {
	var k K
	p := k.prefix()
	b := make([]byte, len(p)+36)
	copy(b, p)
	u := b[len(p):]
	hex.Encode(u[0:8], id[0:4])
	hex.Encode(u[9:13], id[4:6])
	hex.Encode(u[14:18], id[6:8])
	hex.Encode(u[19:23], id[8:10])
	hex.Encode(u[24:36], id[10:16])
	u[8], u[13], u[18], u[23] = '-', '-', '-', '-'
	return string(b)
}

// MarshalText renders the prefixed form; the zero id renders as empty.
func (id ID[K]) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return []byte{}, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText parses the prefixed form; empty gives the zero id.
func (id *ID[K]) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID[K]{}
		return nil
	}
	parsed, err := ParseID[K](string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// ParseID reads the prefixed text form of an id.
func ParseID[K Kind](s string) (ID[K], error) {
	var id ID[K]
	var k K
	u, ok := strings.CutPrefix(s, k.prefix())
	if !ok {
		return id, fmt.Errorf("%w: want %q followed by a UUID", ErrBadID, k.prefix())
	}
	if len(u) != 36 || u[8] != '-' || u[13] != '-' || u[18] != '-' || u[23] != '-' {
		return id, fmt.Errorf("%w: want %q followed by a UUID", ErrBadID, k.prefix())
	}
	if _, err := hex.Decode(id[:], []byte(u[0:8]+u[9:13]+u[14:18]+u[19:23]+u[24:36])); err != nil {
		return ID[K]{}, fmt.Errorf("%w: want %q followed by a UUID", ErrBadID, k.prefix())
	}
	if id.IsZero() {
		return id, fmt.Errorf("%w: nothing has the id zero", ErrBadID) // as a filter it would mean no filter
	}
	return id, nil
}
