package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/godwit-hq/godwit/client"
)

type deadLettersCommand struct {
	List   listCommand[deadLetterFilter] `cmd:"" help:"List dead letters."`
	Get    getCommand                    `cmd:"" help:"Show a dead letter."`
	Replay replayDeadLettersCommand      `cmd:"" help:"Deliver one dead letter again, or all that match."`
	Purge  purgeDeadLettersCommand       `cmd:"" help:"Remove dead letters for good."`
	Export exportDeadLettersCommand      `cmd:"" help:"Print dead letters with their events, one JSON object per line."`
}

// deadLetterChoice selects dead letters.
type deadLetterChoice struct {
	Endpoint string     `name:"endpoint" complete:"endpoints" help:"Only of this endpoint." placeholder:"SUB_ID"`
	Type     string     `name:"type" complete:"types" help:"Only events of this type." placeholder:"TYPE"`
	Status   string     `name:"status" enum:",terminal,exhausted" default:"" help:"Only those that are terminal or exhausted." placeholder:"STATUS"`
	Reason   string     `name:"reason" help:"Only with this reason." placeholder:"REASON"`
	Range    timeFilter `embed:""`
}

type deadLetterFilter struct {
	Choice   deadLetterChoice `embed:""`
	Replayed bool             `name:"replayed" help:"Also those that were replayed since."`
}

// replayDeadLettersCommand replays one dead letter, or many.
type replayDeadLettersCommand struct {
	ID         string           `arg:"" name:"id" optional:"" complete:"noun" help:"Id of its delivery, also as a table has shortened it. Without it, --all or a filter chooses."`
	Choice     deadLetterChoice `embed:""`
	All        bool             `name:"all" api:"-" help:"All dead letters of the tenant."`
	JSON       bool             `name:"json" help:"Print what the API answers as JSON."`
	Connection `embed:""`
}

// Run replays.
func (c *replayDeadLettersCommand) Run(s *Session) error {
	body, err := c.Choice.body(s, c.All)
	switch {
	case err != nil:
		return err
	case c.ID != "" && len(body) > 0:
		return errors.New("give an id, or a filter or --all, not both")
	case c.ID == "" && len(body) == 0:
		return errors.New("give an id, a filter, or --all for every dead letter")
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	if c.ID != "" {
		id, err := deadLetters.find(s.Context, cl, c.ID)
		if err != nil {
			return err
		}
		text, err := cl.Resource(deadLetters.path).Of(id, "replay").Post(s.Context, nil)
		if err != nil {
			return fmt.Errorf("replay dead letter: %w", err)
		}
		if c.JSON {
			return s.printJSON(text)
		}
		return s.printTable(deliveryColumns, []json.RawMessage{text})
	}
	n, err := replayAll(s, cl, body)
	if err != nil {
		return fmt.Errorf("replay dead letters: %w (%d were replayed before)", err, n)
	}
	if c.JSON {
		return json.NewEncoder(s.Stdout).Encode(map[string]int{"replayed": n})
	}
	_, err = fmt.Fprintln(s.Stdout, n, "replayed")
	return err
}

// replayAll replays what matches, request by request.
func replayAll(s *Session, cl *client.Client, body map[string]any) (replayed int, err error) {
	for {
		text, err := cl.Resource(deadLetters.path, "replay").Post(s.Context, body)
		if err != nil {
			return replayed, err
		}
		var part struct {
			Replayed   int    `json:"replayed"`
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(text, &part); err != nil {
			return replayed, fmt.Errorf("read answer: %w", err)
		}
		replayed += part.Replayed
		if part.NextCursor == "" {
			return replayed, nil
		}
		body = maps.Clone(body)
		body["cursor"] = part.NextCursor
	}
}

// body returns the choice as members of a request.
func (c *deadLetterChoice) body(s *Session, all bool) (map[string]any, error) {
	body, err := members(c, s.Now())
	if err == nil && all {
		body["all"] = true
	}
	return body, err
}

// purgeDeadLettersCommand removes dead letters.
type purgeDeadLettersCommand struct {
	Choice       deadLetterChoice `embed:""`
	Replayed     bool             `name:"replayed" api:"-" help:"Also those that were replayed since."`
	All          bool             `name:"all" api:"-" help:"All dead letters of the tenant."`
	confirmFlags `embed:""`
	Connection   `embed:""`
}

// Run purges, as often as there is more: the server removes a bounded number at a time, and asks each time.
func (c *purgeDeadLettersCommand) Run(s *Session) error {
	body, err := c.Choice.body(s, c.All)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return errors.New("give a filter, or --all for every dead letter")
	}
	if c.Replayed {
		body["replayed"] = true
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	purged := 0
	for more := true; more; {
		steps := &twoSteps{s: s, part: cl.Resource(deadLetters.path, "purge"), method: http.MethodPost, body: body, yes: c.Yes}
		text, err := steps.run("Remove them for good?")
		if err != nil {
			return fmt.Errorf("purge dead letters: %w", err)
		}
		var part struct {
			Purged int  `json:"purged"`
			More   bool `json:"more"`
		}
		if err := json.Unmarshal(text, &part); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		purged += part.Purged
		more = part.More && part.Purged > 0
	}
	if c.JSON {
		return json.NewEncoder(s.Stdout).Encode(map[string]int{"purged": purged})
	}
	_, err = fmt.Fprintln(s.Stdout, purged, "removed")
	return err
}

// exportDeadLettersCommand prints dead letters with their events.
type exportDeadLettersCommand struct {
	Filter     deadLetterFilter `embed:""`
	Connection `embed:""`
}

// Run exports.
func (c *exportDeadLettersCommand) Run(s *Session) error {
	filter, err := query(&c.Filter, s.Now())
	if err != nil {
		return err
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	lines, err := cl.Resource(deadLetters.path, "export").Stream(s.Context, filter)
	if err != nil {
		return fmt.Errorf("export dead letters: %w", err)
	}
	defer lines.Close()
	_, err = io.Copy(s.Stdout, lines)
	return err
}

var deadLetters = &resource{
	noun: "dead letter", path: "dead-letters", idPath: "delivery.id",
	columns: []column{
		{title: "DELIVERY", path: "delivery.id", kind: id},
		{title: "STATUS", path: "delivery.status"},
		{title: "REASON", path: "delivery.reason"},
		{title: "TYPE", path: "event.type"},
		{title: "ENDPOINT", path: "delivery.endpoint_id", kind: id, spare: true},
		{title: "ATTEMPTS", path: "delivery.attempt_count", kind: number, spare: true},
		{title: "DIED", path: "dead_at", kind: when},
		{title: "REPLAYED", path: "replayed_at", kind: when, spare: true},
		{title: "DETAIL", path: "last_detail", spare: true},
	},
	details: map[string]string{
		"": `A dead letter is a delivery that ended without being accepted, with a copy of its event. Its id is that of the delivery.

Examples:

    godwit dead-letters list --endpoint sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit dead-letters replay del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f
    godwit dead-letters replay --type order.paid --since 1d
    godwit dead-letters export --status terminal > terminal.ndjson
    godwit dead-letters purge --until 30d`,
		"purge": `The server says what would go, and asks for a confirmation, which this command gives after asking you. Without a terminal it needs --yes.

Examples:

    godwit dead-letters purge --until 30d
    godwit dead-letters purge --all --yes`,
	},
}
