package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
)

// explainCommand explains an event's receivers.
type explainCommand struct {
	itemArg    `embed:""`
	Endpoint   string `name:"endpoint" complete:"endpoints" help:"Only this endpoint." placeholder:"SUB_ID"`
	pageFlags  `embed:""`
	Connection `embed:""`
}

var explainColumns = []column{
	{title: "ENDPOINT", path: "endpoint.id", kind: id},
	{title: "UID", path: "endpoint.uid", spare: true},
	{title: "GOT IT", path: "matched", kind: mark},
	{title: "REASON", path: "reason"},
	{title: "STATUS", path: "state", spare: true},
	{title: "DELIVERY", path: "delivery", kind: id, spare: true},
	{title: "DETAIL", path: "detail"},
}

// Run explains the event.
func (c *explainCommand) Run(s *Session) error {
	cl, id, err := c.open(s, events, &c.Connection)
	if err != nil {
		return err
	}
	limit := c.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	query := url.Values{}
	if c.Endpoint != "" {
		query.Set("endpoint", c.Endpoint)
	}
	var items []json.RawMessage
	for {
		query.Set("limit", strconv.Itoa(maxPage))
		if !c.All {
			query.Set("limit", strconv.Itoa(min(maxPage, limit-len(items))))
		}
		var page struct {
			Endpoints  []json.RawMessage `json:"endpoints"`
			NextCursor string            `json:"next_cursor"`
		}
		answer, err := cl.Resource(events.path).Of(id, "explain").Stream(s.Context, query)
		if err != nil {
			return fmt.Errorf("explain event: %w", err)
		}
		err = json.NewDecoder(answer).Decode(&page)
		answer.Close()
		if err != nil {
			return fmt.Errorf("explain event: %w", err)
		}
		items = append(items, page.Endpoints...)
		if page.NextCursor == "" {
			break
		}
		if !c.All && len(items) >= limit {
			s.say("there are more; --limit N or --all shows them")
			break
		}
		query.Set("cursor", page.NextCursor)
	}
	switch {
	case c.JSON:
		return s.printLines(items)
	case len(items) == 0:
		s.say("no endpoints")
		return nil
	}
	return s.printTable(explainColumns, items)
}
