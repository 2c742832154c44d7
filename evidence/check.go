package evidence

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxText bounds each text of an entry, in bytes; with it, a line is bounded and so is what Verify needs.
const maxText = 4096

// Check reports whether the entry can be part of a chain. Texts have to be UTF-8 without U+0000, which PostgreSQL does not keep,
// and no longer than 4096 bytes; the type and the time have to be there, and a checkpoint with its type alone.
func (e *Entry) Check() error {
	if e.Type == "" {
		return errors.New("it has no type")
	}
	if y := e.At.UTC().Year(); e.At.IsZero() || y < 1 || y > 9999 {
		return errors.New("it has no time that can be written")
	}
	for _, f := range [...]struct{ name, text string }{
		{"type", e.Type}, {"decision", e.Decision}, {"command_id", e.CommandID}, {"submitted_command_id", e.SubmittedID},
		{"previous_command_id", e.PreviousID}, {"idempotency_key", e.Key}, {"command", e.Command}, {"actor_id", e.Actor},
		{"channel", e.Channel}, {"fingerprint", e.Fingerprint}, {"original_fingerprint", e.Stored}, {"outcome_ref", e.OutcomeRef},
		{"outcome_status", e.OutcomeStatus}, {"outcome_digest", e.OutcomeDigest}, {"reason", e.Reason}, {"event_id", e.EventID},
		{"delivery_id", e.DeliveryID}, {"endpoint_id", e.EndpointID}, {"session_id", e.Session}, {"user", e.User}, {"target", e.Target},
	} {
		if err := checkText(f.name, f.text); err != nil {
			return err
		}
	}
	if e.ResponseStatus < 0 || e.ResponseStatus > 999 {
		return fmt.Errorf("invalid response_status %d", e.ResponseStatus)
	}
	if (e.Checkpoint != nil) != (e.Type == Signed) {
		return fmt.Errorf("a checkpoint and type %s go together", Signed)
	}
	if e.Checkpoint != nil {
		return e.Checkpoint.check()
	}
	return nil
}

func (c *Checkpoint) check() error {
	if c.Seq < 1 || c.Seq > maxSeq {
		return fmt.Errorf("checkpoint: seq %d is not a sequence number", c.Seq)
	}
	if !isHash(c.Hash) {
		return fmt.Errorf("checkpoint: hash %q is not a hash", c.Hash)
	}
	if !isHash(c.KeyID) {
		return fmt.Errorf("checkpoint: invalid key_id %q", c.KeyID)
	}
	if len(c.Signature) != signatureLength {
		return fmt.Errorf("checkpoint: invalid signature %q", c.Signature)
	}
	return checkText("checkpoint.signature", c.Signature)
}

func checkText(name, s string) error {
	switch {
	case s == "":
		return nil
	case len(s) > maxText:
		return fmt.Errorf("%s is longer than %d bytes", name, maxText)
	case strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s):
		return fmt.Errorf("%s is not text", name)
	}
	return nil
}
