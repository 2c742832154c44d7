package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/client"
)

// searchCommand searches events.
type searchCommand struct {
	Text       string     `arg:"" optional:"" help:"Text in the payload or in the idempotency key, or the id of an event."`
	Type       string     `name:"type" complete:"types" help:"Only of this type, or of those under prefix.*." placeholder:"TYPE"`
	Key        string     `name:"idempotency-key" help:"Only with this idempotency key." placeholder:"KEY"`
	Source     string     `name:"source" complete:"sources" help:"Only those that came by this source." placeholder:"SOURCE"`
	Attribute  string     `name:"attribute" help:"Only with this attribute." placeholder:"NAME:VALUE"`
	Range      timeFilter `embed:""`
	Limit      int        `name:"limit" short:"n" help:"Show this many at most, the newest first." default:"50" placeholder:"N"`
	JSON       bool       `name:"json" help:"Print one JSON object per line, as the API shows it."`
	Connection `embed:""`
}

// Run searches until there are enough events, or none is left. One request examines a bounded number of events; the next goes on where it ended.
func (c *searchCommand) Run(s *Session) error {
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	q := client.EventSearch{Text: c.Text, Type: c.Type, Key: c.Key, Source: c.Source, Attribute: c.Attribute}
	for _, t := range []struct {
		flag string
		at   moment
		into *time.Time
	}{{"since", c.Range.Since, &q.Since}, {"until", c.Range.Until, &q.Until}} {
		if t.at == "" {
			continue
		}
		at, err := t.at.resolve(s.Now())
		if err != nil {
			return fmt.Errorf("--%s: %w", t.flag, err)
		}
		*t.into = at.UTC()
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	shown, scanned := 0, 0
	for {
		q.Limit = min(maxPage, c.Limit-shown)
		var end *client.SearchEnd
		for line, err := range cl.SearchEvents(s.Context, q) {
			if err != nil {
				return fmt.Errorf("search events: %w", err)
			}
			switch {
			case line.Event != nil:
				shown++
				if err := c.show(s, line.Event); err != nil {
					return err
				}
			case line.Progress != nil && s.Width > 0:
				fmt.Fprintf(s.Stderr, "\r%d examined, back to %s ", scanned+line.Progress.Scanned, line.Progress.Reached.Local().Format(time.DateTime))
			case line.End != nil:
				end = line.End
			}
		}
		scanned += end.Scanned
		if end.Next == "" || shown >= c.Limit {
			if s.Width > 0 {
				fmt.Fprint(s.Stderr, "\r\x1b[K")
			}
			s.say("%d found, %d examined", shown, scanned)
			if end.Next != "" {
				s.say("there may be more; --limit N shows them")
			}
			return nil
		}
		q.Cursor = end.Next
	}
}

// show prints an event at once: a search may take long.
func (c *searchCommand) show(s *Session, e *client.FoundEvent) error {
	if c.JSON {
		_, err := fmt.Fprintf(s.Stdout, "%s\n", e.Raw)
		return err
	}
	clear := ""
	if s.Width > 0 {
		clear = "\r\x1b[K"
	}
	_, err := fmt.Fprintf(s.Stdout, "%s%s  %s  %-24s  %s\n", clear, e.ID, e.CreatedAt.Local().Format(time.DateTime), Printable(e.Type), Printable(e.Match))
	return err
}
