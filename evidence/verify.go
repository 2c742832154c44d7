package evidence

import (
	"bufio"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Options configure Verify.
type Options struct {
	// Keys are the public keys that may have signed header and checkpoints. Without keys the header is checked with the key
	// that it names, which shows that the file is intact but not who made it.
	Keys []ed25519.PublicKey
	// Tenant is the expected owner of the chain. Defaults to the header's.
	Tenant string
	// Known are links known from elsewhere, such as the end of an earlier export. Where the file has their sequence numbers it
	// must have their hashes. This reveals a chain that was made anew as a whole.
	Known []Head
	// Item is called for every valid item, in order. Verify stops at its error and returns it.
	Item func(line int64, it *Item) error

	reach int // of tests
}

const (
	maxLine = 1 << 20
	// reach is how many items back a checkpoint's link is compared. A checkpoint is appended shortly after the link that it
	// covers.
	reach = 1 << 16
)

// Verify reads an exported file to its end or to the first broken link. It needs a few megabytes for a file of any length. The
// error is a *Broken, also in the report, if the file is not valid; otherwise it is the reader's.
func Verify(r io.Reader, o Options) (Report, error) {
	v := verifier{recent: recent{size: int64(cmp.Or(o.reach, reach))}, in: bufio.NewReaderSize(r, 16<<10), options: o, keys: map[string]ed25519.PublicKey{}, known: map[int64]string{}}
	for _, k := range o.Keys {
		if len(k) != ed25519.PublicKeySize {
			return Report{}, errors.New("verify evidence: a pinned key is not an Ed25519 public key")
		}
		v.keys[KeyID(k)] = k
	}
	for _, h := range o.Known {
		if have, twice := v.known[h.Seq]; twice && have != h.Hash {
			return Report{}, fmt.Errorf("verify evidence: item %d is known by two hashes", h.Seq)
		}
		v.known[h.Seq] = h.Hash
	}
	v.report.Known = len(v.known)
	err := v.run()
	var broken *Broken
	if errors.As(err, &broken) {
		v.report.Broken = broken
	}
	return v.report, err
}

type verifier struct {
	in      *bufio.Reader
	options Options
	keys    map[string]ed25519.PublicKey
	known   map[int64]string
	recent  recent

	report Report
	line   int64 // the one being read
	next   int64 // the expected sequence number
	prev   string
	buf    []byte
}

func (v *verifier) run() error {
	h, err := v.header()
	if err != nil {
		return err
	}
	v.next, v.prev = h.From, h.PrevHash
	if err := v.meet(h.From-1, h.PrevHash); err != nil {
		return err
	}
	v.recent.add(h.From-1, h.PrevHash)
	for v.next <= h.To {
		if err := v.item(); err != nil {
			return err
		}
	}
	if v.prev != h.ToHash {
		v.next--
		return v.broken(BadEnd, "its hash is not the one that the header names for the last item")
	}
	return v.end()
}

// header reads the first line and finds the key to check it with.
func (v *verifier) header() (Header, error) {
	line, err := v.read()
	if err != nil {
		return Header{}, err
	}
	var format struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(line, &format) == nil && format.Format != Format {
		return Header{}, v.broken(BadFormat, "the format is %q; this reads %q", format.Format, Format)
	}
	h, err := parseHeader(line)
	if err != nil {
		return h, v.broken(BadHeader, "it is not the header of exported evidence: %v", err)
	}
	raw, ok := decodeBase64(h.PublicKey, ed25519.PublicKeySize)
	if !ok || KeyID(raw) != h.KeyID {
		return h, v.broken(BadKey, "key_id is not the fingerprint of public_key")
	}
	pinned := len(v.keys) > 0
	if _, ok := v.keys[h.KeyID]; pinned && !ok {
		return h, v.broken(BadKey, "it is signed with key %s, which is not a pinned one", h.KeyID)
	}
	v.keys[h.KeyID] = raw
	signature, ok := decodeBase64(h.Signature, ed25519.SignatureSize)
	if !ok || !ed25519.Verify(raw, appendHeader(nil, &h, false), signature) {
		return h, v.broken(BadSignature, "the header's signature is wrong")
	}
	if v.options.Tenant != "" && h.Tenant != v.options.Tenant {
		return h, v.broken(ForeignTenant, "it is the chain of tenant %q, not of %q", h.Tenant, v.options.Tenant)
	}
	r := &v.report
	r.Tenant, r.From, r.To, r.PrevHash, r.ToHash = h.Tenant, h.From, h.To, h.PrevHash, h.ToHash
	r.ExportedAt, r.KeyID, r.PublicKey, r.Pinned = h.ExportedAt, h.KeyID, h.PublicKey, pinned
	return h, nil
}

// item reads a line and compares it with the one before. The line's own hash is checked first: a wrong hash means that this
// line was changed; a right hash in the wrong place means that other lines were removed, added or made anew.
func (v *verifier) item() error {
	line, err := v.read()
	if err != nil {
		return err
	}
	it, err := Parse(line)
	if err != nil {
		return v.broken(BadLine, "it is not an item in canonical form: %v", err)
	}
	if sum := it.Sum(); sum != it.Hash {
		return v.broken(BadHash, "the line was changed: its hash is %s, it says %s", sum, it.Hash)
	}
	switch {
	case it.Tenant != v.report.Tenant:
		return v.broken(ForeignTenant, "it is an item of tenant %q", it.Tenant)
	case it.Seq > v.next:
		return v.broken(Gap, "items are missing: after %d comes %d", v.next-1, it.Seq)
	case it.Seq < v.next:
		return v.broken(Repeated, "item %d comes again, after %d", it.Seq, v.next-1)
	case it.Prev != v.prev:
		return v.broken(BadPrev, "it follows an item with hash %s, the one before it has %s: either was made anew", it.Prev, v.prev)
	}
	if err := v.checkpoint(&it); err != nil {
		return err
	}
	if err := v.meet(it.Seq, it.Hash); err != nil {
		return err
	}
	v.recent.add(it.Seq, it.Hash)
	v.report.Items++
	v.report.Totals.add(&it)
	v.next, v.prev = it.Seq+1, it.Hash
	if v.options.Item != nil {
		return v.options.Item(v.line, &it)
	}
	return nil
}

func (v *verifier) checkpoint(it *Item) error {
	c := it.Checkpoint
	if c == nil {
		return nil
	}
	if c.Seq >= it.Seq {
		return v.broken(BadCheckpoint, "the checkpoint covers item %d, which is not before it", c.Seq)
	}
	hash, here := v.recent.find(c.Seq)
	if here && hash != c.Hash {
		return v.broken(BadCheckpoint, "the checkpoint covers item %d with hash %s, the file has %s", c.Seq, c.Hash, hash)
	}
	key, ok := v.keys[c.KeyID]
	if !ok {
		if v.report.Pinned {
			return v.broken(BadCheckpoint, "the checkpoint is signed with key %s, which is not a pinned one", c.KeyID)
		}
		v.report.Unsigned++
		return nil
	}
	if !c.holds(key, it.Tenant, it.At) {
		return v.broken(BadCheckpoint, "the checkpoint's signature is wrong")
	}
	if !here {
		v.report.Unlinked++
		return nil
	}
	v.report.Checkpoints++
	v.report.Covered = max(v.report.Covered, c.Seq)
	return nil
}

// meet compares a link with a known one.
func (v *verifier) meet(seq int64, hash string) error {
	known, ok := v.known[seq]
	if !ok {
		return nil
	}
	if known != hash {
		return v.broken(BadKnown, "item %d is known with hash %s, the file has %s: the chain was made anew", seq, known, hash)
	}
	v.report.KnownMet++
	return nil
}

// read returns the next line without its newline. It is valid until the next call.
func (v *verifier) read() ([]byte, error) {
	v.line++
	v.buf = v.buf[:0]
	for {
		part, err := v.in.ReadSlice('\n')
		v.buf = append(v.buf, part...)
		switch {
		case len(v.buf) > maxLine:
			return nil, v.broken(LineTooLong, "the line is longer than %d bytes", maxLine)
		case err == nil:
			return v.buf[:len(v.buf)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, v.cutOff()
		default:
			return nil, fmt.Errorf("read line %d: %w", v.line, err)
		}
	}
}

// cutOff returns what is missing at the end of the file.
func (v *verifier) cutOff() error {
	if len(v.buf) == 0 && v.line == 1 {
		return v.broken(Truncated, "there is nothing")
	}
	if len(v.buf) == 0 {
		return v.broken(Truncated, "the file ends after item %d; the header names %d as the last", v.next-1, v.report.To)
	}
	_, err := Parse(v.buf)
	if v.line == 1 {
		_, err = parseHeader(v.buf)
	}
	if err == nil {
		return v.broken(NoNewline, "the line does not end with a newline")
	}
	return v.broken(Truncated, "the file ends within the line")
}

// end checks that nothing follows.
func (v *verifier) end() error {
	v.line++
	v.next = 0
	switch _, err := v.in.ReadByte(); {
	case err == nil:
		return v.broken(Trailing, "there is more after the last item that the header names")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("read line %d: %w", v.line, err)
	}
}

func (v *verifier) broken(k Kind, format string, args ...any) error {
	return &Broken{Line: v.line, Seq: v.next, Kind: k, Detail: fmt.Sprintf(format, args...)}
}

// recent holds the last hashes, in a ring.
type recent struct {
	size        int64
	hashes      []string
	first, last int64
}

func (r *recent) add(seq int64, hash string) {
	if len(r.hashes) == 0 {
		r.first = seq
	}
	r.last = seq
	if int64(len(r.hashes)) < r.size {
		r.hashes = append(r.hashes, hash)
		return
	}
	r.hashes[(seq-r.first)%r.size] = hash
}

func (r *recent) find(seq int64) (string, bool) {
	if seq < r.first || seq > r.last || seq <= r.last-r.size {
		return "", false
	}
	return r.hashes[(seq-r.first)%r.size], true
}
