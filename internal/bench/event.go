package bench

import (
	"bytes"
	"errors"
	"time"
)

// The body of an event is a JSON object with fixed offsets, so that neither side has to parse it. A profile may put it into an
// envelope, where it is found by its opening:
//
//	{"run":"0000002a","seq":"00000000000000ff","at":"0000000005f5e100","pad":"xxxx…"}
const (
	runAt   = len(`{"run":"`)
	seqAt   = runAt + 8 + len(`","seq":"`)
	timeAt  = seqAt + 16 + len(`","at":"`)
	padAt   = timeAt + 16 + len(`","pad":"`)
	minSize = padAt + len(`"}`)
)

var opening = []byte(`{"run":"`)

// newBody makes the body of a run's events, in which number and time are set later.
func newBody(run uint32, size int) []byte {
	body := make([]byte, max(size, minSize))
	for i := range body {
		body[i] = 'x'
	}
	copy(body, opening)
	copy(body[runAt+8:], `","seq":"`)
	copy(body[seqAt+16:], `","at":"`)
	copy(body[timeAt+16:], `","pad":"`)
	copy(body[len(body)-2:], `"}`)
	putHex(body[runAt:runAt+8], uint64(run))
	stamp(body, 0, 0)
	return body
}

func stamp(body []byte, seq uint64, at time.Duration) {
	putHex(body[seqAt:seqAt+16], seq)
	putHex(body[timeAt:timeAt+16], uint64(at))
}

// readStamp finds the stamp of a body, also within a profile's envelope.
func readStamp(body []byte) (run uint32, seq uint64, at time.Duration, err error) {
	if i := bytes.Index(body, opening[1:]); i > 1 { // an envelope may add members before ours
		body = body[i-1:]
	}
	if len(body) < minSize {
		return 0, 0, 0, errNotOurs
	}
	r, err1 := readHex(body[runAt : runAt+8])
	seq, err2 := readHex(body[seqAt : seqAt+16])
	t, err3 := readHex(body[timeAt : timeAt+16])
	return uint32(r), seq, time.Duration(t), errors.Join(err1, err2, err3)
}

var errNotOurs = errors.New("not an event of this bench")

const hexDigits = "0123456789abcdef"

func putHex(dst []byte, v uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = hexDigits[v&0xf]
		v >>= 4
	}
}

func readHex(src []byte) (uint64, error) {
	var v uint64
	for _, c := range src {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, errNotOurs
		}
	}
	return v, nil
}
