package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/client"
)

// target is the argument that names an item.
type itemArg struct {
	ID string `arg:"" name:"id" complete:"noun" help:"Its id, also as a table has shortened it."`
}

// getCommand shows an item.
type getCommand struct {
	itemArg    `embed:""`
	JSON       bool `name:"json" help:"Print the JSON object that the API shows."`
	Connection `embed:""`
}

// Run shows the item.
func (c *getCommand) Run(s *Session) error {
	r, _, err := s.noun()
	if err != nil {
		return err
	}
	cl, id, err := c.open(s, r, &c.Connection)
	if err != nil {
		return err
	}
	text, err := cl.Resource(r.path).Of(id).Get(s.Context)
	if err != nil {
		return fmt.Errorf("get %s: %w", r.noun, err)
	}
	return s.printOne(text, c.JSON, r.parts)
}

// open connects, and finds the whole id.
func (c *itemArg) open(s *Session, r *resource, conn *Connection) (*client.Client, string, error) {
	cl, err := conn.Client(s)
	if err != nil {
		return nil, "", err
	}
	id, err := r.find(s.Context, cl, c.ID)
	return cl, id, err
}

// createCommand creates an item. B holds the flags for its members.
type createCommand[B any] struct {
	Members    B      `embed:""`
	Body       string `name:"body" help:"JSON object with members for the API, or a file with it; - for standard input. Flags take precedence." placeholder:"JSON|FILE"`
	JSON       bool   `name:"json" help:"Print the JSON object that the API answers with."`
	Connection `embed:""`
}

// Run creates the item.
func (c *createCommand[B]) Run(s *Session) error {
	r, _, err := s.noun()
	if err != nil {
		return err
	}
	body, err := s.body(c.Body, &c.Members)
	if err != nil {
		return err
	}
	if n, ok := any(&c.Members).(interface{ withDefaults(map[string]any) }); ok {
		n.withDefaults(body)
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	text, err := cl.Resource(r.path).Post(s.Context, body)
	if err != nil {
		return fmt.Errorf("create %s: %w", r.noun, err)
	}
	return s.printOne(text, c.JSON, r.parts)
}

// updateCommand changes an item.
type updateCommand[B any] struct {
	itemArg    `embed:""`
	Members    B      `embed:""`
	Body       string `name:"body" help:"JSON object with members to change, or a file with it; - for standard input. null removes a member. Flags take precedence." placeholder:"JSON|FILE"`
	JSON       bool   `name:"json" help:"Print the JSON object that the API answers with."`
	Connection `embed:""`
}

// Run changes the item.
func (c *updateCommand[B]) Run(s *Session) error {
	r, _, err := s.noun()
	if err != nil {
		return err
	}
	body, err := s.body(c.Body, &c.Members)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return errors.New("nothing to change: give a flag for each member that gets another value, or --body")
	}
	cl, id, err := c.open(s, r, &c.Connection)
	if err != nil {
		return err
	}
	text, err := cl.Resource(r.path).Of(id).Patch(s.Context, body)
	if err != nil {
		return fmt.Errorf("update %s: %w", r.noun, err)
	}
	return s.printOne(text, c.JSON, r.parts)
}

// deleteCommand deletes an item after asking.
type deleteCommand struct {
	itemArg    `embed:""`
	Yes        bool `name:"yes" short:"y" help:"Do it without asking."`
	Connection `embed:""`
}

// Run deletes the item.
func (c *deleteCommand) Run(s *Session) error {
	r, name, err := s.noun()
	if err != nil {
		return err
	}
	cl, id, err := c.open(s, r, &c.Connection)
	if err != nil {
		return err
	}
	if !c.Yes && s.Interactive {
		if err := s.showBefore(cl, r, id); err != nil {
			return fmt.Errorf("%s %s: %w", name, r.noun, err)
		}
	}
	if err := s.confirm(c.Yes, fmt.Sprintf("%s %s %s?", capital(name), r.noun, id)); err != nil {
		return err
	}
	if err := cl.Resource(r.path).Of(id).Delete(s.Context); err != nil {
		return fmt.Errorf("%s %s: %w", name, r.noun, err)
	}
	s.say("%s %s", past[name], id)
	return nil
}

// Get shows an item of a noun whose other verbs are elsewhere.
type Get struct {
	getCommand `embed:""`
}

// Delete deletes or revokes such an item.
type Delete struct {
	deleteCommand `embed:""`
}

// past are the words for what was done.
var past = map[string]string{"delete": "deleted", "revoke": "revoked", "end": "ended"}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// showBefore shows what would be changed, so that the user confirms the right thing.
func (s *Session) showBefore(cl *client.Client, r *resource, id string) error {
	text, err := cl.Resource(r.path).Of(id).Get(s.Context)
	if err != nil {
		return err
	}
	onError := *s
	onError.Stdout = s.Stderr
	return onError.printTable(r.columns, []json.RawMessage{text})
}

// actCommand carries out a verb of an item. B holds the flags for the members of its request.
type actCommand[B any] struct {
	itemArg    `embed:""`
	Members    B    `embed:""`
	JSON       bool `name:"json" help:"Print what the API answers as JSON."`
	Connection `embed:""`
}

// Run carries out the verb.
func (c *actCommand[B]) Run(s *Session) error {
	r, name, err := s.noun()
	if err != nil {
		return err
	}
	v, ok := r.verbs[name]
	if !ok {
		return fmt.Errorf("%s %s has no definition", name, r.noun)
	}
	given, err := members(&c.Members, s.Now())
	if err != nil {
		return err
	}
	cl, id, err := c.open(s, r, &c.Connection)
	if err != nil {
		return err
	}
	part := cl.Resource(r.path).Of(id, v.part)
	var text json.RawMessage
	switch {
	case v.method == http.MethodGet:
		text, err = part.Get(s.Context)
	case len(given) > 0:
		text, err = part.Post(s.Context, given)
	default:
		text, err = part.Post(s.Context, nil)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, r.noun, err)
	}
	return s.printAnswer(r, &v, text, c.JSON)
}

// printAnswer shows what the API answered to a verb.
func (s *Session) printAnswer(r *resource, v *verb, text json.RawMessage, asJSON bool) error {
	switch {
	case len(text) == 0:
		return nil
	case asJSON:
		return s.printJSON(text)
	case v.list != nil:
		var page client.Page
		if err := json.Unmarshal(text, &page); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		return s.printTable(v.list, page.Items)
	case v.row:
		return s.printTable(r.columns, []json.RawMessage{text})
	}
	return s.printOne(text, false, r.parts)
}
