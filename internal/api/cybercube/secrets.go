package cybercube

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

type rotatedView struct {
	Secret     string `json:"secret,omitempty"`
	ValidUntil string `json:"previous_secret_valid_until"`
	Redacted   bool   `json:"secret_redacted,omitempty"` // the secret was shown before (IDS IT-14)
}

// secretHandlers serve the operations on signing secrets.
type secretHandlers struct {
	commands interface {
		RotateSecret(ctx context.Context, r builtincommand.Request, id godwit.EndpointID, rot management.Rotation) (*management.IssuedSecret, bool, error)
	}
	api    *httpapi.API
	finder endpointFinder
}

// rotate issues a new secret. The previous secret goes on signing for a day, so that the receiver can change over,
// unless the request revokes it (CCW-API-14, CCW-SEC-11).
func (h *secretHandlers) rotate(c *httpapi.Call) error {
	e, err := h.finder.named(c)
	if err != nil {
		return err
	}
	f, err := readForm(c.Body, "revoke_previous")
	if err != nil {
		return err
	}
	var rotation management.Rotation
	if f.bool("revoke_previous") {
		rotation.Overlap = new(time.Duration)
	}
	if err := f.err(); err != nil {
		return err
	}
	issued, redacted, err := h.commands.RotateSecret(c.R.Context(), h.api.CommandRequest(c.R, c.Caller), e.ID, rotation)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, rotatedView{Secret: issued.Value, ValidUntil: timestamp(issued.OthersUntil), Redacted: redacted})
}

// Redact removes the secret from a response before it is stored for repeats, because a secret is shown only once (CCW-SEC-7,
// OT-26).
func Redact(body []byte) []byte {
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(whole["data"], &inner) != nil || inner["secret"] == nil {
		return body
	}
	delete(inner, "secret")
	inner["secret_redacted"] = json.RawMessage("true") // a client that lost the secret must rotate it (IDS IT-14)
	whole["data"] = encode(inner)
	return encode(whole)
}
