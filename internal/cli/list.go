package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/config"
)

// maxDocument limits what is read of a document that the user gives.
const maxDocument = 16 << 20

func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxDocument)) }

// pageFlags choose how much of a list is shown.
type pageFlags struct {
	Limit int  `name:"limit" short:"n" help:"Show this many at most, the newest first. Defaults to 50; of event types, to all." placeholder:"N"`
	All   bool `name:"all" help:"Show all."`
	JSON  bool `name:"json" help:"Print one JSON object per line, as the API shows it."`
}

// listCommand lists a noun. F holds its filters.
type listCommand[F any] struct {
	Filter    F `embed:""`
	pageFlags `embed:""`

	Watch      bool            `name:"watch" short:"w" help:"Go on until stopped: show the list anew when it changes on a terminal, else print new and changed items."`
	Interval   config.Duration `name:"interval" help:"How often --watch asks the server." default:"2s" placeholder:"DURATION"`
	Connection `embed:""`
}

// Run lists the noun.
func (c *listCommand[F]) Run(s *Session) error {
	r, _, err := s.noun()
	if err != nil {
		return err
	}
	filter, err := query(&c.Filter, s.Now())
	if err != nil {
		return err
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	l := &listing{s: s, r: r, from: cl.Resource(r.path), columns: r.columns, filter: filter, flags: c.pageFlags}
	if c.Watch {
		return l.watch(c.Interval.Real())
	}
	return l.print()
}

// listing is a list that is read and shown.
type listing struct {
	s       *Session
	r       *resource
	from    *client.Resource
	columns []column
	filter  url.Values
	flags   pageFlags
}

// defaultLimit is how many items a list shows unless the user wants another number.
const defaultLimit = 50

// maxPage is the largest page that the API gives.
const maxPage = 200

// read gets the items, and whether there are more.
func (l *listing) read() (items []json.RawMessage, more bool, err error) {
	switch {
	case l.flags.Limit < 0:
		return nil, false, fmt.Errorf("--limit must be at least 1")
	case l.flags.Limit == 0 && l.r.whole:
		l.flags.All = true
	case l.flags.Limit == 0:
		l.flags.Limit = defaultLimit
	}
	next := maps.Clone(l.filter)
	if next == nil {
		next = url.Values{}
	}
	for {
		size := maxPage
		if !l.flags.All {
			size = min(size, l.flags.Limit-len(items))
		}
		next.Set("limit", strconv.Itoa(size))
		page, err := l.from.Page(l.s.Context, next)
		if err != nil {
			return nil, false, fmt.Errorf("list %s: %w", l.r.plural(), err)
		}
		items = append(items, page.Items...)
		if page.NextCursor == "" {
			return items, false, nil
		}
		if !l.flags.All && len(items) >= l.flags.Limit {
			return items, true, nil
		}
		next.Set("cursor", page.NextCursor)
	}
}

func (l *listing) print() error {
	items, more, err := l.read()
	if err != nil {
		return err
	}
	if err := l.show(items); err != nil {
		return err
	}
	if more {
		l.s.say("there are more; --limit N or --all shows them")
	}
	return nil
}

func (l *listing) show(items []json.RawMessage) error {
	switch {
	case l.flags.JSON && l.r.jsonArray:
		if items == nil {
			items = []json.RawMessage{}
		}
		return json.NewEncoder(l.s.Stdout).Encode(items)
	case l.flags.JSON:
		return l.s.printLines(items)
	case len(items) == 0:
		l.s.say("no %s", l.r.plural())
		return nil
	}
	return l.s.printTable(l.columns, items)
}

// clear moves to the top of a terminal and clears it.
const clear = "\x1b[H\x1b[2J"

// watch shows the list again and again until the session ends.
func (l *listing) watch(interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("--interval must be longer than 0s")
	}
	redraw := l.s.Width > 0 && !l.flags.JSON
	known := map[string]string{} // documents by id
	for first := true; ; first = false {
		items, _, err := l.read()
		if l.s.Context.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		var changed []json.RawMessage
		now := map[string]string{}
		for _, item := range items {
			id := l.r.id(item)
			if now[id] = string(item); known[id] != string(item) {
				changed = append(changed, item)
			}
		}
		if err := l.repaint(redraw, first, items, changed); err != nil {
			return err
		}
		known = now
		select {
		case <-l.s.Context.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// repaint shows what a look at the list has found.
func (l *listing) repaint(redraw, first bool, items, changed []json.RawMessage) error {
	if redraw {
		fmt.Fprint(l.s.Stdout, clear)
		return l.show(items) // also if nothing changed: times are relative
	}
	if len(changed) == 0 {
		return nil
	}
	for i, j := 0, len(changed)-1; i < j; i, j = i+1, j-1 { // oldest first, as they happened
		changed[i], changed[j] = changed[j], changed[i]
	}
	if l.flags.JSON {
		return l.s.printLines(changed)
	}
	columns := l.columns
	if !first { // the titles were printed before
		return l.s.printRows(columns, changed)
	}
	return l.s.printTable(columns, changed)
}

// partListCommand lists what belongs to an item.
type partListCommand struct {
	itemArg    `embed:""`
	pageFlags  `embed:""`
	Connection `embed:""`
}

// Run lists the part that the verb names.
func (c *partListCommand) Run(s *Session) error {
	r, name, err := s.noun()
	if err != nil {
		return err
	}
	cl, id, err := c.open(s, r, &c.Connection)
	if err != nil {
		return err
	}
	v := r.verbs[name]
	part := &resource{noun: strings.TrimSuffix(name, "s")}
	l := &listing{s: s, r: part, from: cl.Resource(r.path).Of(id, v.part), columns: v.list, flags: c.pageFlags}
	return l.print()
}
