package evidence

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"
)

// Format names the format of exported files.
const Format = "godwit-evidence/1"

// A Header is the first line of an exported file. It names the file's two ends, so that missing lines at either are noticed.
type Header struct {
	Format     string    `json:"format"`
	Tenant     string    `json:"tenant"`
	From       int64     `json:"from_seq"` // above 1: the file is a part of the chain
	To         int64     `json:"to_seq"`   // From-1 when the file holds no item
	PrevHash   string    `json:"prev_hash"`
	ToHash     string    `json:"to_hash"`
	ExportedAt time.Time `json:"exported_at"`
	KeyID      string    `json:"key_id"`
	PublicKey  string    `json:"public_key"` // base64
	Signature  string    `json:"signature"`  // base64 of Ed25519 over the canonical form of the other members
}

// appendHeader writes the canonical form. Without the signature it is what is signed.
func appendHeader(b []byte, h *Header, withSignature bool) []byte {
	b = append(b, '{')
	b = appendTime(b, "exported_at", h.ExportedAt)
	b = appendMust(b, "format", h.Format)
	b = appendInt(b, "from_seq", h.From)
	b = appendMust(b, "key_id", h.KeyID)
	b = appendMust(b, "prev_hash", h.PrevHash)
	b = appendMust(b, "public_key", h.PublicKey)
	if withSignature {
		b = appendMust(b, "signature", h.Signature)
	}
	b = appendMust(b, "tenant", h.Tenant)
	b = appendMust(b, "to_hash", h.ToHash)
	b = appendInt(b, "to_seq", h.To)
	return append(b, '}')
}

// parseHeader reads the first line strictly. It does not check the signature.
func parseHeader(line []byte) (Header, error) {
	s := scanner{line: line}
	s.open()
	h := Header{
		ExportedAt: s.time("exported_at"), Format: s.text("format"), From: s.int("from_seq"), KeyID: s.text("key_id"),
		PrevHash: s.text("prev_hash"), PublicKey: s.text("public_key"), Signature: s.text("signature"), Tenant: s.text("tenant"),
		ToHash: s.text("to_hash"), To: s.int("to_seq"),
	}
	s.close()
	if err := s.end(); err != nil {
		return h, err
	}
	if !bytes.Equal(appendHeader(nil, &h, true), line) {
		return h, errNotCanonical
	}
	if h.Tenant == "" || h.From < 1 || h.To < h.From-1 || h.To > maxSeq || !isHash(h.PrevHash) || !isHash(h.ToHash) {
		return h, errors.New("from_seq and to_seq contradict each other")
	}
	if (h.From == 1 && h.PrevHash != Genesis) || (h.To == h.From-1 && h.ToHash != h.PrevHash) {
		return h, errors.New("its hashes do not match from_seq and to_seq")
	}
	return h, nil
}

// ErrIncomplete reports that an export ended before the head that its header names.
var ErrIncomplete = errors.New("the export ended before the head of the chain")

// An Exporter writes a file. It writes items as they are, even if they do not match: the verifier finds changes and needs the
// file for that.
type Exporter struct {
	w      io.Writer
	key    ed25519.PrivateKey
	header Header
	begun  bool
	last   int64
	buf    []byte
}

// NewExporter makes an exporter of a tenant's chain up to head, starting with the given sequence number (1 for the whole chain;
// at most one behind head). The key signs the header; at is the time of the export.
func NewExporter(w io.Writer, key ed25519.PrivateKey, tenant string, head Head, from int64, at time.Time) (*Exporter, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errNoKey
	}
	if head.Seq == 0 {
		head.Hash = Genesis
	}
	if err := checkText("tenant", tenant); err != nil || tenant == "" || (head.Tenant != "" && head.Tenant != tenant) {
		return nil, fmt.Errorf("export evidence: tenant %q is not the head's", tenant)
	}
	if from < 1 || from > head.Seq+1 {
		return nil, fmt.Errorf("export evidence: the chain has items 1 to %d; it cannot be exported from %d on", head.Seq, from)
	}
	public := publicOf(key)
	return &Exporter{w: w, key: key, last: from - 1, header: Header{
		Format: Format, Tenant: tenant, From: from, To: head.Seq, ToHash: head.Hash, ExportedAt: instant(at),
		KeyID: KeyID(public), PublicKey: base64.StdEncoding.EncodeToString(public),
	}}, nil
}

// Append writes items, oldest first. It omits items behind the head: they were appended after the head was read.
func (x *Exporter) Append(items ...Item) error {
	x.buf = x.buf[:0]
	for i := range items {
		it := &items[i]
		if it.Seq > x.header.To {
			break
		}
		x.begin(it.Prev)
		x.buf = append(appendItem(x.buf, it, true), '\n')
		x.last = it.Seq
	}
	return x.flush()
}

// Close writes the remaining data; it does not close the writer. ErrIncomplete says that items are missing at the end, which
// the file also shows.
func (x *Exporter) Close() error {
	x.buf = x.buf[:0]
	x.begin(x.header.ToHash)
	if err := x.flush(); err != nil {
		return err
	}
	if x.last != x.header.To {
		return fmt.Errorf("export evidence: %w: it has %d, the head is %d", ErrIncomplete, x.last, x.header.To)
	}
	return nil
}

// begin writes the header, which names the hash before the first item.
func (x *Exporter) begin(prev string) {
	if x.begun {
		return
	}
	x.begun = true
	h := &x.header
	h.PrevHash = prev
	if h.From == 1 {
		h.PrevHash = Genesis
	}
	h.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(x.key, appendHeader(nil, h, false)))
	x.buf = append(appendHeader(x.buf, h, true), '\n')
}

func (x *Exporter) flush() error {
	if len(x.buf) == 0 {
		return nil
	}
	if _, err := x.w.Write(x.buf); err != nil {
		return fmt.Errorf("export evidence: %w", err)
	}
	return nil
}
