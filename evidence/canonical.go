package evidence

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// The members of an item are few and of plain types, so their canonical form (RFC 8785) is written by hand, in sorted order: a
// busy executor hashes every decision on its way to the store. The tests compare it with a general implementation.

// timeForm has fixed microseconds, which is what both databases keep.
const timeForm = "2006-01-02T15:04:05.000000Z"

// instant is t in the precision of the chain.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// appendItem writes the canonical form. Without the hash it is the input of the hash.
func appendItem(b []byte, it *Item, withHash bool) []byte {
	b = append(b, '{')
	b = appendText(b, "actor_id", it.Actor)
	b = appendTime(b, "at", it.At)
	b = appendText(b, "channel", it.Channel)
	if c := it.Checkpoint; c != nil {
		b = append(appendName(b, "checkpoint"), '{')
		b = appendMust(b, "hash", c.Hash)
		b = appendMust(b, "key_id", c.KeyID)
		b = appendInt(b, "seq", c.Seq)
		b = appendMust(b, "signature", c.Signature)
		b = append(b, '}')
	}
	b = appendText(b, "command", it.Command)
	b = appendText(b, "command_id", it.CommandID)
	b = appendText(b, "decision", it.Decision)
	b = appendText(b, "delivery_id", it.DeliveryID)
	b = appendText(b, "endpoint_id", it.EndpointID)
	b = appendText(b, "event_id", it.EventID)
	b = strconv.AppendBool(appendName(b, "executed"), it.Executed)
	b = appendText(b, "fingerprint", it.Fingerprint)
	if withHash {
		b = appendMust(b, "hash", it.Hash)
	}
	b = appendText(b, "idempotency_key", it.Key)
	b = appendText(b, "original_fingerprint", it.Stored)
	b = appendText(b, "outcome_digest", it.OutcomeDigest)
	b = appendText(b, "outcome_ref", it.OutcomeRef)
	b = appendText(b, "outcome_status", it.OutcomeStatus)
	b = appendMust(b, "prev_hash", it.Prev)
	b = appendText(b, "previous_command_id", it.PreviousID)
	b = appendText(b, "reason", it.Reason)
	if it.ResponseStatus != 0 {
		b = appendInt(b, "response_status", int64(it.ResponseStatus))
	}
	b = appendInt(b, "seq", it.Seq)
	b = appendText(b, "session_id", it.Session)
	b = appendText(b, "submitted_command_id", it.SubmittedID)
	b = appendText(b, "target", it.Target)
	b = appendMust(b, "tenant", it.Tenant)
	b = appendMust(b, "type", it.Type)
	b = appendText(b, "user", it.User)
	return append(b, '}')
}

// appendName writes a comma, where one belongs, and the name.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// appendText omits an empty text.
func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(appendName(b, name), value)
}

func appendMust(b []byte, name, value string) []byte {
	return appendString(appendName(b, name), value)
}

// appendInt writes numbers up to maxSeq only: every JSON reader keeps those exactly.
func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendName(b, name), n, 10)
}

func appendTime(b []byte, name string, t time.Time) []byte {
	b = append(appendName(b, name), '"')
	b = t.UTC().AppendFormat(b, timeForm)
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// appendString escapes exactly what RFC 8785 escapes. Invalid UTF-8 becomes U+FFFD: an item that was changed in its store can
// then still be written, and its hash shows the change.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(append(b, s[start:i]...), "\uFFFD"...)
		} else if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		} else {
			b = appendEscape(append(b, s[start:i]...), c)
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\t':
		return append(b, '\\', 't')
	case '\n':
		return append(b, '\\', 'n')
	case '\f':
		return append(b, '\\', 'f')
	case '\r':
		return append(b, '\\', 'r')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
