package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Genesis is the prev_hash of the first item of a chain.
const Genesis = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

const (
	hashPrefix = "sha256:"
	hashLength = len(Genesis)
	// maxSeq is the largest integer that every JSON reader keeps exactly (RFC 7493).
	maxSeq = 1<<53 - 1
)

// Link appends an entry behind head: it sets the next sequence number, the previous hash and its own hash. The time is cut to
// microseconds, so that the item is the same after a database has stored it. An invalid entry (see Entry.Check) is an error,
// and so is a head of another tenant.
func Link(head Head, tenant string, e Entry) (Item, error) {
	if err := e.Check(); err != nil {
		return Item{}, fmt.Errorf("link evidence: %w", err)
	}
	if err := checkText("tenant", tenant); err != nil || tenant == "" {
		return Item{}, fmt.Errorf("link evidence: invalid tenant %q", tenant)
	}
	prev := Genesis
	if head.Seq != 0 {
		prev = head.Hash
		if head.Tenant != "" && head.Tenant != tenant {
			return Item{}, fmt.Errorf("link evidence: the head belongs to tenant %q, the entry to %q", head.Tenant, tenant)
		}
	}
	if !isHash(prev) || head.Seq < 0 || head.Seq >= maxSeq {
		return Item{}, fmt.Errorf("link evidence: invalid head %d %q", head.Seq, head.Hash)
	}
	if e.Checkpoint != nil && e.Checkpoint.Seq > head.Seq {
		return Item{}, fmt.Errorf("link evidence: a checkpoint of item %d cannot follow item %d", e.Checkpoint.Seq, head.Seq)
	}
	e.At = instant(e.At)
	it := Item{Tenant: tenant, Seq: head.Seq + 1, Prev: prev, Entry: e}
	it.Hash = it.Sum()
	return it, nil
}

// Sum computes the item's hash.
func (it *Item) Sum() string {
	var room [1024]byte
	sum := sha256.Sum256(appendItem(room[:0], it, false))
	var text [len(Genesis)]byte
	copy(text[:], hashPrefix)
	hex.Encode(text[len(hashPrefix):], sum[:])
	return string(text[:])
}

// Head is the item as the last link of its chain.
func (it *Item) Head() Head { return Head{Tenant: it.Tenant, Seq: it.Seq, Hash: it.Hash, At: it.At} }

// Line is the canonical JSON of the item, without the newline that ends it in a file.
func Line(it *Item) []byte { return appendItem(make([]byte, 0, 1024), it, true) }

// MarshalJSON writes the canonical form. (encoding/json escapes <, > and & in it unless told not to.)
func (it Item) MarshalJSON() ([]byte, error) { return Line(&it), nil }

// errNotCanonical is for a line that is valid but not in canonical form.
var errNotCanonical = errors.New("its bytes are not the canonical form of what they say")

// Parse reads a line strictly: members that are unknown or there twice, and bytes that are not canonical, are errors. It does
// not look at the hash; see Item.Sum.
func Parse(line []byte) (Item, error) {
	s := scanner{line: line}
	it := scanItem(&s)
	if err := s.end(); err != nil {
		return Item{}, err
	}
	var room [1024]byte
	if !bytes.Equal(appendItem(room[:0], &it, true), line) {
		return Item{}, errNotCanonical
	}
	return it, it.check()
}

// scanItem reads what appendItem writes.
func scanItem(s *scanner) (it Item) {
	s.open()
	it.Actor = s.text("actor_id")
	it.At = s.time("at")
	it.Channel = s.text("channel")
	if s.member("checkpoint") {
		s.open()
		it.Checkpoint = &Checkpoint{Hash: s.text("hash"), KeyID: s.text("key_id"), Seq: s.int("seq"), Signature: s.text("signature")}
		s.close()
	}
	it.Command = s.text("command")
	it.CommandID = s.text("command_id")
	it.Decision = s.text("decision")
	it.DeliveryID = s.text("delivery_id")
	it.EndpointID = s.text("endpoint_id")
	it.EventID = s.text("event_id")
	it.Executed = s.bool("executed")
	it.Fingerprint = s.text("fingerprint")
	it.Hash = s.text("hash")
	it.Key = s.text("idempotency_key")
	it.Stored = s.text("original_fingerprint")
	it.OutcomeDigest = s.text("outcome_digest")
	it.OutcomeRef = s.text("outcome_ref")
	it.OutcomeStatus = s.text("outcome_status")
	it.Prev = s.text("prev_hash")
	it.PreviousID = s.text("previous_command_id")
	it.Reason = s.text("reason")
	it.ResponseStatus = int(s.int("response_status"))
	it.Seq = s.int("seq")
	it.Session = s.text("session_id")
	it.SubmittedID = s.text("submitted_command_id")
	it.Target = s.text("target")
	it.Tenant = s.text("tenant")
	it.Type = s.text("type")
	it.User = s.text("user")
	s.close()
	return it
}

func (it *Item) check() error {
	if err := it.Entry.Check(); err != nil {
		return err
	}
	if it.Tenant == "" {
		return errors.New("it has no tenant")
	}
	if err := checkText("tenant", it.Tenant); err != nil {
		return err
	}
	if it.Seq < 1 || it.Seq > maxSeq {
		return fmt.Errorf("seq %d is not a sequence number", it.Seq)
	}
	if !isHash(it.Prev) {
		return fmt.Errorf("prev_hash %q is not a hash", it.Prev)
	}
	if !isHash(it.Hash) {
		return fmt.Errorf("hash %q is not a hash", it.Hash)
	}
	return nil
}

// isHash reports whether the text is "sha256:" and 64 lower-case hex digits.
func isHash(s string) bool {
	if len(s) != hashLength || s[:len(hashPrefix)] != hashPrefix {
		return false
	}
	for _, c := range []byte(s[len(hashPrefix):]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
