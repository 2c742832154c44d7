package identity

import (
	"errors"
	"fmt"
)

// A Reason says why a sign-in was refused.
type Reason string

// The reasons.
const (
	NoFlow        Reason = "no-sign-in"         // the browser has no sign-in under way, or one of another browser or time
	Late          Reason = "too-late"           // the person took longer than FlowLife
	Declined      Reason = "declined"           // the provider or the person said no
	Unavailable   Reason = "provider-down"      // the provider could not be reached, or did not do its part
	BadToken      Reason = "token-refused"      // the provider's answer does not prove who the person is
	NoGrant       Reason = "no-grant"           // none of the person's groups may do anything here
	TooManyGroups Reason = "too-many-groups"    // the provider left the groups out because they are too many
	BadReturn     Reason = "return-not-allowed" // the page to return to is not one of the dashboard
)

// A Refusal is the answer to a sign-in that does not lead to a session. Its detail is for the person and holds no secret.
type Refusal struct {
	Reason Reason
	Detail string
	cause  error // for the log
}

func (r *Refusal) Error() string {
	if r.cause == nil {
		return string(r.Reason) + ": " + r.Detail
	}
	return fmt.Sprintf("%s: %s: %s", r.Reason, r.Detail, clip(r.cause))
}

// clip shortens an error that may hold a whole answer of the provider.
func clip(err error) string { return fmt.Sprintf("%.300s", err.Error()) }

func (r *Refusal) Unwrap() error { return r.cause }

func refuse(reason Reason, cause error, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...), cause: cause}
}

// AsRefusal returns the refusal that an error is, or nil.
func AsRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}
