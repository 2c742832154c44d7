package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
)

type statsCommand struct {
	Show     statsShowCommand     `cmd:"" default:"withargs" help:"Show counts and latencies over time."`
	Failures statsFailuresCommand `cmd:"" help:"Show why attempts failed."`
	Waiting  statsWaitingCommand  `cmd:"" help:"Show what waits now."`
}

// Help returns the text that --help shows.
func (statsCommand) Help() string {
	return `The server keeps the history of counts and latencies by minute, hour and day; docs/stats.md says what counts. A key of an environment sees all its tenants
together, one of the server everything. --tenant shows one.

Examples:

    godwit stats --since 1h
    godwit stats --since 30d --by tenant
    godwit stats --by endpoint --tenant customer-42
    godwit stats failures --since 15m
    godwit stats waiting`
}

// statsFilter selects a part of the history.
type statsFilter struct {
	Since    moment `name:"since" help:"At or after this time: 2h (that long ago), 2006-01-02, \"2006-01-02 15:04\" or RFC 3339. Defaults to 24h." placeholder:"TIME"`
	Until    moment `name:"until" help:"Before this time, written as with --since. Defaults to now." placeholder:"TIME"`
	Endpoint string `name:"endpoint" complete:"endpoints" help:"Only this endpoint." placeholder:"SUB_ID"`
}

type statsShowCommand struct {
	Filter struct {
		Part  statsFilter `embed:""`
		Step  string      `name:"step" help:"Length of a row: minute, hour or day. Defaults to one that suits the range." placeholder:"STEP"`
		Group string      `name:"by" api:"group" help:"One row for each endpoint or tenant, those with the most failed attempts first, instead of one for each step." placeholder:"endpoint|tenant"`
		Limit int         `name:"limit" short:"n" help:"Show this many endpoints or tenants at most. Defaults to 20." placeholder:"N"`
	} `embed:""`
	JSON       bool `name:"json" help:"Print one JSON object per line, as the API shows it."`
	Connection `embed:""`
}

type statsFailuresCommand struct {
	Filter     statsFilter `embed:""`
	JSON       bool        `name:"json" help:"Print one JSON object per line, as the API shows it."`
	Connection `embed:""`
}

type statsWaitingCommand struct {
	JSON       bool `name:"json" help:"Print the JSON object that the API shows."`
	Connection `embed:""`
}

// statsColumns returns the columns of counts, after those that say of what. The prefix is the path of the counts.
func statsColumns(prefix string, of ...column) []column {
	return append(of,
		column{title: "EVENTS", path: prefix + "events", kind: number},
		column{title: "ATTEMPTS", path: prefix + "attempts", kind: number, spare: true},
		column{title: "ACKNOWLEDGED", path: prefix + "acknowledged", kind: number},
		column{title: "FAILED", path: prefix + "failed_attempts", kind: number},
		column{title: "DEAD", path: prefix + "dead", kind: number},
		column{title: "P50 MS", path: prefix + "p50_ms", kind: number, spare: true},
		column{title: "P99 MS", path: prefix + "p99_ms", kind: number, spare: true},
	)
}

// askStats reads a document of the history.
func (c *Connection) askStats(s *Session, flags any, out any, segments ...string) error {
	filter := url.Values{}
	if flags != nil {
		var err error
		if filter, err = query(flags, s.Now()); err != nil {
			return err
		}
	}
	cl, err := c.Client(s)
	if err != nil {
		return err
	}
	answer, err := cl.Resource(append([]string{"stats"}, segments...)...).Stream(s.Context, filter)
	if err == nil {
		defer answer.Close()
		err = json.NewDecoder(answer).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("show stats: %w", err)
	}
	return nil
}

// Run shows the history.
func (c *statsShowCommand) Run(s *Session) error {
	var answer struct {
		Points []json.RawMessage `json:"points"`
		Groups []json.RawMessage `json:"groups"`
		Total  map[string]any    `json:"total"`
	}
	if err := c.askStats(s, &c.Filter, &answer); err != nil {
		return err
	}
	grouped := c.Filter.Group != "" && c.Filter.Group != "none"
	switch {
	case c.JSON && grouped:
		return s.printLines(answer.Groups)
	case c.JSON:
		return s.printLines(answer.Points)
	case grouped && len(answer.Groups) == 0:
		s.say("no traffic")
		return nil
	case grouped:
		return s.printTable(statsColumns("total.", column{title: "ENDPOINT", path: "endpoint", kind: id, spare: true}, column{title: "TENANT", path: "tenant", kind: id}), answer.Groups)
	}
	answer.Total["at"] = "total"
	total, err := json.Marshal(answer.Total)
	if err != nil {
		return err
	}
	return s.printTable(statsColumns("", column{title: "AT", path: "at"}), append(answer.Points, total))
}

// Run shows the causes of failures.
func (c *statsFailuresCommand) Run(s *Session) error {
	var answer struct {
		Causes []json.RawMessage `json:"causes"`
	}
	if err := c.askStats(s, &c.Filter, &answer, "failures"); err != nil {
		return err
	}
	switch {
	case c.JSON:
		return s.printLines(answer.Causes)
	case len(answer.Causes) == 0:
		s.say("no failed attempts")
		return nil
	}
	return s.printTable([]column{
		{title: "CAUSE", path: "cause"},
		{title: "CODE", path: "code", kind: number},
		{title: "ATTEMPTS", path: "count", kind: number},
		{title: "ENDPOINTS", path: "endpoints", kind: number},
		{title: "FIRST", path: "first_at", kind: when, spare: true},
		{title: "LAST", path: "last_at", kind: when},
		{title: "EXAMPLE", path: "example_endpoint", kind: id, spare: true},
		{title: "WHAT TO DO", path: "advice"},
	}, answer.Causes)
}

// Run shows what waits.
func (c *statsWaitingCommand) Run(s *Session) error {
	var answer json.RawMessage
	if err := c.askStats(s, nil, &answer, "waiting"); err != nil {
		return err
	}
	if c.JSON {
		return s.printLines([]json.RawMessage{answer})
	}
	return s.printTable([]column{
		{title: "WAITING", path: "waiting", kind: number},
		{title: "MORE", path: "waiting_capped", kind: mark, spare: true},
		{title: "OLDEST", path: "oldest_at", kind: when},
		{title: "HEALTHY", path: "endpoints.healthy", kind: number},
		{title: "FAILING", path: "endpoints.failing", kind: number},
		{title: "OPEN", path: "endpoints.open", kind: number},
		{title: "PAUSED", path: "endpoints.paused", kind: number},
		{title: "DISABLED", path: "endpoints.disabled", kind: number},
	}, []json.RawMessage{answer})
}
