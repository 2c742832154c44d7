package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/client"
)

// confirmFlags confirm an operation that the server does in two steps.
type confirmFlags struct {
	Yes  bool `name:"yes" short:"y" help:"Confirm without asking."`
	JSON bool `name:"json" help:"Print what the API answers as JSON."`
}

// approvalFlags name the second key that the deletion of a tenant needs.
type approvalFlags struct {
	ApproverContext string `name:"approver-context" complete:"contexts" help:"Context whose key approves it. Defaults to asking for the token of \"godwit command approve\"." placeholder:"NAME"`
}

// twoSteps carries out an operation of two steps. Its first request does nothing; the second executes once the user has confirmed.
type twoSteps struct {
	s       *Session
	part    *client.Resource
	method  string // POST or DELETE
	body    any    // nil: none
	yes     bool
	approve func(commandID string) (token string, err error) // nil: asks
}

// run returns the answer of the second step.
func (t *twoSteps) run(question string) (json.RawMessage, error) {
	// This is checked before the first step, which would be left behind.
	if !t.yes && !t.s.Interactive {
		return nil, t.s.confirm(false, question)
	}
	asked, err := t.part.Ask(t.s.Context, t.method, t.body)
	if err != nil {
		return nil, err
	}
	if a := asked.Affects; a != nil {
		t.s.say("%s", Affected(a))
	}
	if err := t.s.confirm(t.yes, question); err != nil {
		return nil, err
	}
	stepUp := ""
	if asked.StepUpURL != "" {
		if stepUp, err = t.approval(asked.CommandID); err != nil {
			return nil, err
		}
	}
	return t.part.Confirm(t.s.Context, t.method, t.body, asked, stepUp)
}

// approval gets the token of a second key.
func (t *twoSteps) approval(commandID string) (string, error) {
	if t.approve != nil {
		return t.approve(commandID)
	}
	t.s.say("A second API key has to approve it: godwit command approve %s --context OTHER", commandID)
	if !t.s.Interactive {
		return "", fmt.Errorf("a second API key has to approve it: name its context with --approver-context")
	}
	return t.s.Ask("The token that it printed: ")
}

// approver returns the function that approves with the key of another context; nil if there is none.
func (f *approvalFlags) approver(s *Session) (func(string) (string, error), error) {
	if f.ApproverContext == "" {
		return nil, nil
	}
	other := Connection{Context: f.ApproverContext}
	cl, err := other.Client(s)
	if err != nil {
		return nil, fmt.Errorf("--approver-context: %w", err)
	}
	return func(commandID string) (string, error) {
		approval, err := cl.Commands().StepUp(s.Context, commandID)
		if err != nil {
			return "", fmt.Errorf("approve with context %s: %w", f.ApproverContext, err)
		}
		return approval.Token, nil
	}, nil
}

// Affected says how many dead letters would be removed, and of which endpoints. It cuts a long list.
func Affected(a *client.CommandAffects) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d dead letters", a.DeadLetters)
	if a.More {
		b.WriteString(" (there may be more that match)")
	}
	const shown = 10
	for i, e := range a.Endpoints {
		if i == shown {
			fmt.Fprintf(&b, "\n           %d more endpoints", len(a.Endpoints)-shown)
			break
		}
		fmt.Fprintf(&b, "\n           %d of %s", e.DeadLetters, Printable(e.ID))
	}
	return b.String()
}

// revokeKeyCommand revokes a signing key of an environment.
type revokeKeyCommand struct {
	itemArg      `embed:""`
	Key          string `arg:"" help:"Id of the key, as \"godwit environments keys\" shows it."`
	confirmFlags `embed:""`
	Connection   `embed:""`
}

// Run revokes the key.
func (c *revokeKeyCommand) Run(s *Session) error {
	cl, id, err := c.open(s, environments, &c.Connection)
	if err != nil {
		return err
	}
	steps := &twoSteps{s: s, part: cl.Resource(environments.path).Of(id, "signing-keys", c.Key, "revoke"), method: http.MethodPost, yes: c.Yes}
	text, err := steps.run(fmt.Sprintf("Revoke signing key %s of environment %s?", c.Key, id))
	if err != nil {
		return fmt.Errorf("revoke signing key: %w", err)
	}
	s.say("revoked %s", c.Key)
	if c.JSON {
		return s.printJSON(text)
	}
	return nil
}

// revokeSecretCommand revokes a signing secret.
type revokeSecretCommand struct {
	itemArg      `embed:""`
	Secret       string `arg:"" help:"Id of the secret, as \"godwit endpoints secrets\" shows it."`
	confirmFlags `embed:""`
	Connection   `embed:""`
}

// Run revokes the secret.
func (c *revokeSecretCommand) Run(s *Session) error {
	cl, id, err := c.open(s, endpoints, &c.Connection)
	if err != nil {
		return err
	}
	steps := &twoSteps{s: s, part: cl.Resource(endpoints.path).Of(id, "secrets", c.Secret, "revoke"), method: http.MethodPost, yes: c.Yes}
	text, err := steps.run(fmt.Sprintf("Revoke secret %s of endpoint %s?", c.Secret, id))
	if err != nil {
		return fmt.Errorf("revoke secret: %w", err)
	}
	s.say("revoked %s", c.Secret)
	if c.JSON {
		return s.printJSON(text)
	}
	return nil
}
