package native

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/builtincommand"
)

// channel is the executor's name of this API.
const channel = "native"

// confirmationHeader confirms a command that an earlier request created.
const confirmationHeader = "Godwit-Confirmation"

// commandRequest returns the caller, the API and the key of an operation that is a command.
func commandRequest(ctx context.Context) builtincommand.Request {
	in := sessionOf(ctx)
	return in.api.CommandRequest(in.request, in.caller)
}

// ConfirmationParams are the headers of a request that may need a confirmation.
type ConfirmationParams struct {
	Token     string `header:"Godwit-Confirmation" maxLength:"128" doc:"confirmation_token of the first answer: executes what that request asked for. Absent: nothing is done yet."`
	CommandID string `header:"Godwit-Command" maxLength:"64" doc:"command_id of the first answer; goes with Godwit-Confirmation"`
	StepUp    string `header:"Godwit-Step-Up" maxLength:"128" doc:"Where the first answer has a step_up_url: the step_up_token that another API key got there"`
}

func (p *ConfirmationParams) confirmation() *builtincommand.Confirmation {
	if p.Token == "" && p.CommandID == "" {
		return nil
	}
	return &builtincommand.Confirmation{CommandID: p.CommandID, Token: p.Token, StepUp: p.StepUp}
}

// Asked is the first response to an operation that must be confirmed.
type Asked struct {
	Status    string    `json:"status" enum:"awaiting_confirmation" doc:"Nothing was done"`
	CommandID string    `json:"command_id" doc:"For the header Godwit-Command" example:"cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Token     string    `json:"confirmation_token" doc:"For the header Godwit-Confirmation. It is shown this once, and is good for this request alone."`
	ExpiresAt time.Time `json:"expires_at" doc:"Until when it can be confirmed"`
	StepUpURL string    `json:"step_up_url,omitempty" doc:"Where another API key has to approve first: POST with that key"`
	// Affects is set for a purge only: every other operation names the one object that it changes.
	Affects *builtincommand.Affected `json:"affects,omitempty" doc:"purge-dead-letters: what would go if it were confirmed now"`
}

// confirmedOutput is either the request for a confirmation or, after the confirmation, the result.
type confirmedOutput[T any] struct {
	Status int
	Body   any
}

// withConfirmation describes an operation of two steps. T is the body of the second response; struct{} means 204.
func withConfirmation[T any](r *router, op huma.Operation) huma.Operation {
	op.Description += "\n\nIt is done in two steps. The first request does nothing and is answered with 202, a command_id and a confirmation_token. The same request, " +
		"with Godwit-Command and Godwit-Confirmation, executes; sent again it gets the same answer."
	op.DefaultStatus = http.StatusAccepted
	op.Responses = r.failures(map[string]*huma.Response{"202": jsonResponse("Awaits confirmation; nothing was done", r.refOf(Asked{}))})
	var done T
	if _, empty := any(done).(struct{}); empty {
		op.Responses["204"] = &huma.Response{Description: "Done"}
	} else {
		op.Responses["200"] = jsonResponse("Done", r.refOf(done))
	}
	return op
}

// confirmed renders the result of a command that must be confirmed. If there is no T to show, the response has no body.
func confirmed[T any](d *builtincommand.Done, err error) (*confirmedOutput[T], error) {
	if err != nil {
		return nil, err
	}
	if a := d.Awaits; a != nil {
		v := Asked{Status: "awaiting_confirmation", CommandID: d.CommandID, Token: a.Token, ExpiresAt: a.ExpiresAt.UTC()}
		if a.StepUp {
			v.StepUpURL = "/ids/v1/commands/" + d.CommandID + "/step-up"
		}
		return &confirmedOutput[T]{Status: http.StatusAccepted, Body: v}, nil
	}
	var v T
	if _, empty := any(v).(struct{}); empty {
		return &confirmedOutput[T]{Status: http.StatusNoContent}, nil
	}
	if err := json.Unmarshal(d.Result, &v); err != nil {
		return nil, fmt.Errorf("read result of %s: %w", d.CommandID, err)
	}
	return &confirmedOutput[T]{Status: http.StatusOK, Body: v}, nil
}
