package ids

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Refusal is the response to a rejected command (IDS-STO-13).
type Refusal struct {
	Status    string          `json:"status"` // "rejected"
	Type      string          `json:"type"`   // "execution.rejected"
	Reason    string          `json:"reason"`
	Detail    string          `json:"detail"`
	Errors    []problem.Field `json:"errors,omitempty"`
	CommandID string          `json:"command_id,omitempty"`
	Key       string          `json:"idempotency_key,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
}

var statuses = map[command.RefusalCode]int{
	command.Malformed: 422, command.InvalidArgs: 422, command.UnknownCommand: 422, command.KeyMismatch: 422, command.Forbidden: 403,
	command.Conflict: 409, command.RateLimited: 429, command.NotFound: 404, command.TokenInvalid: 403, command.TokenExpired: 410,
	command.StepUpRequired: 403, command.NotAwaiting: 409, command.StoreIntegrity: 500, command.SelfApprovalRefused: 403,
	command.ExecutorStopping: 503, command.ReservationUncertain: 503,
}

// refuse answers with a refusal of the executor. It returns any other error to its caller.
func refuse(c *httpapi.Call, err error) error {
	var r *command.Refusal
	if !errors.As(err, &r) {
		return err
	}
	h := c.W.Header()
	switch r.Code {
	case command.RateLimited:
		h.Set("Retry-After", strconv.Itoa(max(int(math.Ceil(r.RetryAfter.Seconds())), 1)))
	case command.ExecutorStopping, command.ReservationUncertain:
		h.Set("Retry-After", "2")
	case command.Conflict:
		h.Set("Link", `</docs/idempotency>; rel="describedby"; type="text/html"`)
	}
	body := Refusal{Status: "rejected", Type: "execution.rejected", Reason: string(r.Code), Detail: r.Detail, CommandID: r.CommandID, Key: r.Key,
		RequestID: h.Get(problem.RequestIDHeader)}
	if r.Field != "" {
		body.Errors = []problem.Field{{Field: r.Field, Detail: r.Detail}}
		if !strings.HasPrefix(r.Detail, r.Field) {
			body.Detail = r.Field + ": " + r.Detail
		}
	}
	return write(c, statuses[r.Code], body)
}
