package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/client"
)

// deliveryChoice selects deliveries.
type deliveryChoice struct {
	Endpoint string     `name:"endpoint" complete:"endpoints" help:"Only to this endpoint." placeholder:"SUB_ID"`
	Event    string     `name:"event" complete:"events" help:"Only of this event." placeholder:"EVT_ID"`
	Type     string     `name:"type" complete:"types" help:"Only events of this type." placeholder:"TYPE"`
	Range    timeFilter `embed:""`
}

// bulkFlags are the flags of an operation on one delivery or many.
type bulkFlags struct {
	ID     string `arg:"" name:"id" optional:"" complete:"noun" help:"Its id, also as a table has shortened it. Without it, --all or a filter chooses."`
	All    bool   `name:"all" help:"All deliveries of the tenant."`
	DryRun bool   `name:"dry-run" help:"Say how many match, and change nothing."`
	Yes    bool   `name:"yes" short:"y" help:"Do it without asking."`
	JSON   bool   `name:"json" help:"Print what the API answers as JSON; of many, the number of deliveries."`
}

// retryDeliveriesCommand retries one delivery, or many.
type retryDeliveriesCommand struct {
	bulkFlags  `embed:""`
	Choice     deliveryChoice `embed:""`
	Status     string         `name:"status" enum:",pending,accepted,terminal,exhausted,cancelled" default:"" help:"Only those that are pending, accepted, terminal, exhausted or cancelled. Defaults to pending, terminal and exhausted ones." placeholder:"STATUS"`
	Connection `embed:""`
}

// Run retries.
func (c *retryDeliveriesCommand) Run(s *Session) error {
	body, err := members(&c.Choice, s.Now())
	if err != nil {
		return err
	}
	if c.Status != "" {
		body["status"] = c.Status
	}
	return c.run(s, &c.Connection, "retry", "retried", body)
}

// cancelDeliveriesCommand cancels one delivery, or many.
type cancelDeliveriesCommand struct {
	bulkFlags  `embed:""`
	Choice     deliveryChoice `embed:""`
	Connection `embed:""`
}

// Run cancels.
func (c *cancelDeliveriesCommand) Run(s *Session) error {
	body, err := members(&c.Choice, s.Now())
	if err != nil {
		return err
	}
	return c.run(s, &c.Connection, "cancel", "cancelled", body)
}

func (c *bulkFlags) run(s *Session, conn *Connection, action, participle string, body map[string]any) error {
	switch {
	case c.ID != "" && (len(body) > 0 || c.All || c.DryRun):
		return errors.New("give an id, or a filter or --all, not both")
	case c.ID == "" && len(body) == 0 && !c.All:
		return errors.New("give an id, a filter, or --all for every delivery")
	}
	cl, err := conn.Client(s)
	if err != nil {
		return err
	}
	if c.ID == "" {
		if c.All {
			body["all"] = true
		}
		b := &bulk{s: s, part: cl.Resource(deliveries.path, action), action: action, participle: participle, body: body}
		return b.run(c)
	}
	id, err := deliveries.find(s.Context, cl, c.ID)
	if err != nil {
		return err
	}
	text, err := cl.Resource(deliveries.path).Of(id, action).Post(s.Context, nil)
	if err != nil {
		return fmt.Errorf("%s delivery: %w", action, err)
	}
	v := deliveries.verbs[action]
	return s.printAnswer(deliveries, &v, text, c.JSON)
}

// bulk carries out an operation on many deliveries: it counts, asks, and goes on until none is left.
type bulk struct {
	s                  *Session
	part               *client.Resource
	action, participle string
	body               map[string]any
}

// bulkAnswer is what the API answers to a part.
type bulkAnswer struct {
	Matched    int    `json:"matched"`
	Changed    int    `json:"changed"`
	More       bool   `json:"more"`
	NextCursor string `json:"next_cursor"`
}

func (b *bulk) post() (a bulkAnswer, err error) {
	text, err := b.part.Post(b.s.Context, b.body)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return a, fmt.Errorf("%s deliveries: %w", b.action, err)
	}
	return a, nil
}

func (b *bulk) run(flags *bulkFlags) error {
	b.body["dry_run"] = true
	preview, err := b.post()
	if err != nil {
		return err
	}
	count := fmt.Sprint(preview.Matched)
	if preview.More {
		count = "at least " + count
	}
	if flags.DryRun {
		if flags.JSON {
			return json.NewEncoder(b.s.Stdout).Encode(map[string]any{"matched": preview.Matched, "more": preview.More})
		}
		_, err := fmt.Fprintln(b.s.Stdout, count, "match")
		return err
	}
	if preview.Matched > 0 || preview.More {
		if err := b.s.confirm(flags.Yes, fmt.Sprintf("%s %s deliveries?", capital(b.action), count)); err != nil {
			return err
		}
	}
	changed, seen := 0, 0
	delete(b.body, "dry_run")
	for more := preview.Matched > 0 || preview.More; more; {
		a, err := b.post()
		if err != nil {
			return fmt.Errorf("%w (%d were %s before)", err, changed, b.participle)
		}
		changed, seen = changed+a.Changed, seen+a.Matched
		if more = a.More; more {
			b.body["cursor"] = a.NextCursor
			b.s.say("%d of %s %s", changed, count, b.participle)
		}
	}
	if flags.JSON {
		return json.NewEncoder(b.s.Stdout).Encode(map[string]int{"matched": seen, "changed": changed})
	}
	_, err = fmt.Fprintln(b.s.Stdout, changed, b.participle)
	return err
}
