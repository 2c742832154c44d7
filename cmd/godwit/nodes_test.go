package main

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/client"
)

// The notes say what needs attention, and nothing else does.
func TestNotesAboutNodes(t *testing.T) {
	node := func(name, state string, alive bool, silent time.Duration) client.Node {
		return client.Node{Name: name, State: state, Alive: alive, LastBeatAgeSeconds: silent.Seconds(), Process: "process 7 on " + name, Version: "v1", Schema: 9}
	}
	n := &client.Nodes{
		AnsweredBy: "b",
		Nodes: []client.Node{
			node("a", "running", true, time.Second), node("b", "leaving", true, 0), node("dead", "running", false, 12*time.Second),
			node("old", "running", false, 48*time.Hour), node("stopped", "leaving", false, time.Minute),
			node("new", "starting", false, time.Second), node("failed", "starting", false, 2*time.Minute),
		},
		Shards: []client.Shard{
			{Shard: 0, Owner: "a", Epoch: 3}, {Shard: 1, Free: true}, {Shard: 2, Owner: "dead", Epoch: 2, Free: true}, {Shard: 3, Free: true}, {Shard: 5, Free: true},
		},
		FreeShards: 4,
		Versions:   []client.NodeVersion{{Version: "v1", Schema: 9, Nodes: []string{"a", "b"}}},
	}
	var out strings.Builder
	show := func(all bool) string {
		out.Reset()
		if err := printNodes(&out, n, all); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	has := func(text string, wanted bool, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if strings.Contains(text, part) != wanted {
				t.Errorf("%q should be there: %v\n%s", part, wanted, text)
			}
		}
	}
	text := show(false)
	has(text, true, "\nb*      ", "leaving", "\ndead    silent", "\nnew     starting", "\nfailed  not started", "2 more that stopped",
		"note: node failed was begun 2m0s ago and has not run since", "note: node dead has been silent for 12s", "process 7 on dead",
		"note: 4 shards have no owner, and their endpoints get nothing: 1-3, 5.")
	has(text, false, "\nold", "\nstopped", "versions differ", "node old", "node new")
	has(show(true), true, "\nold", "silent", "\nstopped  stopped")

	n.Versions = append(n.Versions, client.NodeVersion{Version: "v2", Schema: 10, Nodes: []string{"c"}})
	n.Nodes, n.FreeShards = n.Nodes[:2], 0
	text = show(false)
	has(text, true, "note: versions differ: v1 (schema 9) on a, b; v2 (schema 10) on c.")
	has(text, false, "silent", "no owner", "more that stopped")

	out.Reset()
	if err := printShards(&out, n); err != nil {
		t.Fatal(err)
	}
	has(out.String(), true, "0      a                3\n", "1      none             0\n", "2      none (was dead)  2\n")
}
