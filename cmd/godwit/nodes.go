package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-hq/godwit/client"
)

type nodesCommand struct {
	All        bool `name:"all" help:"List also nodes that have stopped, and those that were last heard of more than a day ago."`
	Shards     bool `name:"shards" help:"List the shards with their owners."`
	JSON       bool `name:"json" help:"Print one JSON object with nodes, shards and versions."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (nodesCommand) Help() string {
	return `Shows the nodes that share the server's database: whether they are alive, what they run, how many of the shards each owns and how
much it has to do. Any node answers for all; "*" marks the one that did. Notes below the table say what needs attention. The key needs the
scope admin.

Examples:

    GODWIT_KEY=gdw_… godwit nodes
    godwit nodes --url https://hooks.example.com --shards
    godwit nodes --json | jq '.free_shards'`
}

func (c *nodesCommand) Run(env *environment) error {
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	n, err := cl.Nodes(env.ctx)
	switch {
	case err != nil:
		return fmt.Errorf("list nodes: %w", err)
	case c.JSON:
		return printJSON(env.stdout, n)
	case c.Shards:
		return printShards(env.stdout, n)
	}
	return printNodes(env.stdout, n, c.All)
}

// forgotten is how long a silent node is listed without being asked for. Containers with generated names never come back.
const forgotten = 24 * time.Hour

// startPatience is how long a node may take from claiming its name to its first beat before its start counts as failed.
const startPatience = time.Minute

const notStarted = "not started"

// nodeCondition says in a word how a node is.
func nodeCondition(n *client.Node) string {
	switch {
	case n.Alive:
		return n.State
	case n.State == "leaving":
		return "stopped"
	case n.State == "starting" && seconds(n.LastBeatAgeSeconds) < startPatience:
		return "starting"
	case n.State == "starting":
		return notStarted
	}
	return "silent"
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// current reports whether operators care about a node unasked.
func current(n *client.Node) bool {
	return n.Alive || nodeCondition(n) != "stopped" && seconds(n.LastBeatAgeSeconds) < forgotten
}

func printNodes(out io.Writer, n *client.Nodes, all bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTATE\tVERSION\tSCHEMA\tSHARDS\tHELD\tIN FLIGHT\tLAG\tLAST BEAT\tSTARTED\tADDRESS")
	hidden := 0
	for i := range n.Nodes {
		x := &n.Nodes[i]
		if !all && !current(x) {
			hidden++
			continue
		}
		name := x.Name
		if name == n.AnsweredBy {
			name += "*"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s ago\t%s\t%s\n", name, nodeCondition(x), x.Version, x.Schema, x.Shards, x.Held, x.InFlight,
			seconds(x.LagSeconds).Round(time.Millisecond), seconds(x.LastBeatAgeSeconds).Round(100*time.Millisecond), x.StartedAt.UTC().Format(time.DateTime), x.Address)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if hidden > 0 {
		fmt.Fprintf(out, "%d more that stopped, or were last heard of more than a day ago; --all lists them\n", hidden)
	}
	for _, note := range nodeNotes(n) {
		if _, err := fmt.Fprintln(out, "note:", note); err != nil {
			return err
		}
	}
	return nil
}

// nodeNotes says what needs an operator's attention.
func nodeNotes(n *client.Nodes) (notes []string) {
	if len(n.Versions) > 1 {
		var parts []string
		for _, v := range n.Versions {
			parts = append(parts, fmt.Sprintf("%s (schema %d) on %s", v.Version, v.Schema, strings.Join(v.Nodes, ", ")))
		}
		notes = append(notes, "versions differ: "+strings.Join(parts, "; ")+". Finish the upgrade")
	}
	for i := range n.Nodes {
		x := &n.Nodes[i]
		age := seconds(x.LastBeatAgeSeconds)
		if age >= forgotten {
			continue
		}
		switch nodeCondition(x) {
		case "silent":
			notes = append(notes, fmt.Sprintf("node %s has been silent for %s: it died, is frozen, or does not reach the database (%s)",
				x.Name, age.Round(time.Second), x.Process))
		case notStarted:
			notes = append(notes, fmt.Sprintf("node %s was begun %s ago and has not run since: its start failed, and its log says why (%s)",
				x.Name, age.Round(time.Second), x.Process))
		}
	}
	if n.FreeShards > 0 {
		var free []int
		for _, s := range n.Shards {
			if s.Free {
				free = append(free, s.Shard)
			}
		}
		notes = append(notes, fmt.Sprintf("%d shards have no owner, and their endpoints get nothing: %s. Running nodes take them within seconds", n.FreeShards, ranges(free)))
	}
	return notes
}

// ranges writes ascending numbers as in "0-3, 7".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		part := fmt.Sprint(numbers[i])
		if last > i {
			part += fmt.Sprintf("-%d", numbers[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ", ")
}

func printShards(out io.Writer, n *client.Nodes) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SHARD\tOWNER\tEPOCH")
	for _, s := range n.Shards {
		owner := s.Owner
		switch {
		case s.Free && owner != "":
			owner = "none (was " + owner + ")"
		case s.Free:
			owner = "none"
		}
		fmt.Fprintf(w, "%d\t%s\t%d\n", s.Shard, owner, s.Epoch)
	}
	return w.Flush()
}
