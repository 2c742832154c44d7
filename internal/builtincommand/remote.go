package builtincommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// RegisterRemote registers commands that tenants' own services execute. The executor calls a service through the sender
// and signs the request like a delivery to the endpoint. The request carries a key derived from the command, which is the
// same on every try, so that the service recognises a repeat (S1).
func RegisterRemote(reg *command.Registry, cfg Config, declared []command.Declaration) error {
	var errs []error
	for _, d := range declared {
		h, err := newRemote(cfg, &d)
		if err == nil {
			err = reg.Register(d, h)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.Name(), err))
		}
	}
	return errors.Join(errs...)
}

type remote struct {
	cfg      Config
	name     string
	tenant   godwit.TenantID
	endpoint godwit.EndpointID
}

func newRemote(cfg Config, d *command.Declaration) (*remote, error) {
	if d.Remote == nil {
		return nil, errors.New("remote: name the endpoint that executes it; this server has no handler of that name")
	}
	tenant, err := godwit.ParseTenantID(d.Tenant)
	if err != nil {
		return nil, errors.New("tenant: name the tenant whose endpoint executes it")
	}
	endpoint, err := godwit.ParseEndpointID(d.Remote.Endpoint)
	if err != nil {
		return nil, errors.New("remote.endpoint: is not the id of an endpoint")
	}
	return &remote{cfg, d.Name(), tenant, endpoint}, nil
}

// remoteRequest is the body of the request to a service.
type remoteRequest struct {
	CommandID string          `json:"command_id"`
	Key       string          `json:"idempotency_key"`
	Tenant    string          `json:"tenant_id"`
	Actor     string          `json:"actor_id"`
	Principal string          `json:"effective_actor_id"`
	Intent    command.Intent  `json:"intent"`
	Args      json.RawMessage `json:"args"`
	Options   json.RawMessage `json:"options,omitempty"`
}

// refusal is the body with which a service rejects a command.
type refusal struct {
	Reason string `json:"reason"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Execute calls the service. 2xx means executed: a JSON object in the answer is the result, and its member summary is the
// summary. 409 and 422 reject the command. The executor retries a transient failure; any other answer is a failure.
func (r *remote) Execute(ctx context.Context, c *command.Call) (*command.Outcome, error) {
	var summary string
	answer, err := c.Do(ctx, "", func(ctx context.Context, key string) (any, error) {
		return r.ask(ctx, c, key)
	})
	if err != nil {
		return nil, err
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal(answer, &result); err != nil || result == nil {
		return nil, fmt.Errorf("read kept answer of the service: %w", err)
	}
	if text, ok := result["summary"]; ok && json.Unmarshal(text, &summary) != nil {
		summary = ""
	}
	if summary == "" {
		summary = r.name + " was executed by the tenant's service."
	}
	return &command.Outcome{Summary: summary, Result: json.RawMessage(answer)}, nil
}

func (r *remote) ask(ctx context.Context, c *command.Call, key string) (any, error) {
	body, err := json.Marshal(remoteRequest{CommandID: c.CommandID, Key: c.Key, Tenant: c.Tenant, Actor: c.Actor, Principal: c.Principal, Intent: c.Intent,
		Args: c.Args, Options: c.Options})
	if err != nil {
		return nil, command.NoEffect(err)
	}
	seen, err := r.cfg.Engine.Call(ctx, r.tenant, r.endpoint, engine.Publication{
		Type: "command." + r.name, ContentType: "application/json", Body: body, Key: key, OccurredAt: time.Time{},
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, command.Transient(rejected("endpoint")(err))
	}
	x, v := &seen.Exchange, &seen.Verdict
	switch {
	case v.Outcome == godwit.Accepted:
		return result(x)
	case x.Failure == nil && (x.Status == 409 || x.Status == 422):
		return nil, command.NoEffect(rejection(x))
	case v.Outcome == godwit.Transient && x.Failure != nil && !x.Failure.Sent:
		return nil, command.NoEffect(command.Transient(fmt.Errorf("the service was not reached: %s", told(x, v))))
	case v.Outcome == godwit.Transient:
		return nil, &command.TransientError{Err: fmt.Errorf("the service answered %s", told(x, v)), After: v.RetryAfter}
	}
	return nil, command.NoEffect(&command.Failure{Reason: "service_refused", Detail: "the tenant's service answered " + told(x, v)})
}

// result returns the JSON object in a service's answer, or {} if the answer is not an object.
func result(x *godwit.Exchange) (any, error) {
	media, _, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") || x.BodyCapped {
		return struct{}{}, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(x.Body, &object) != nil || object == nil {
		return struct{}{}, nil
	}
	return json.RawMessage(x.Body), nil
}

func rejection(x *godwit.Exchange) error {
	var r refusal
	if json.Unmarshal(x.Body, &r) != nil {
		r = refusal{}
	}
	if r.Reason == "" {
		r.Reason = r.Code
	}
	if r.Reason == "" {
		r.Reason = "rejected_by_service"
	}
	if r.Detail == "" {
		r.Detail = fmt.Sprintf("the tenant's service answered %d", x.Status)
	}
	return command.Reject(excerpt(r.Reason, 64), excerpt(r.Detail, 512))
}

// excerpt shortens an external text and puts it on one line.
func excerpt(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

func told(x *godwit.Exchange, v *godwit.Verdict) string {
	if x.Failure != nil {
		return "nothing: " + string(x.Failure.Kind)
	}
	return fmt.Sprintf("%d (%s)", x.Status, v.Reason)
}
