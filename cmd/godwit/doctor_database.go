package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store/postgres"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// databaseTimeout bounds the questions to a database, which may be away.
const databaseTimeout = 15 * time.Second

// database reads the settings of PostgreSQL and the nodes that run on it.
func (e *examination) database() finding {
	ctx, cancel := context.WithTimeout(e.env.ctx, databaseTimeout)
	defer cancel()
	s, err := app.ReadSettings(ctx, &e.cfg.Storage)
	if err != nil {
		return fail("start the database, or correct --store", "%v", err)
	}
	e.settings = &s
	return ok("it answers")
}

// databaseChecks need PostgreSQL. They come after database and store.
func (e *examination) databaseChecks() []check {
	var all []check
	for _, c := range []struct {
		name string
		run  func(postgres.Settings) finding
	}{
		{"pooler", examinePooler}, {"durability", examineDurability}, {"autovacuum", examineAutovacuum}, {"clock skew", examineSkew},
		{"connections", func(s postgres.Settings) finding {
			return examineConnections(s, app.ConnectionBudget(&e.cfg.Storage), e.alive())
		}},
	} {
		all = append(all, check{c.name, func() finding {
			if e.settings == nil {
				return ok("not looked at: the database does not answer")
			}
			return c.run(*e.settings)
		}})
	}
	return append(all, check{"nodes", e.nodes})
}

func examinePooler(s postgres.Settings) finding {
	if s.Pooler {
		return ok("a pooler in session mode is in front of the database")
	}
	return ok("connected to the server directly")
}

// examineDurability finds settings with which a crash or a failover loses acknowledged events.
func examineDurability(s postgres.Settings) finding {
	switch {
	case !s.Fsync:
		return fail("set fsync = on in postgresql.conf and reload it", "fsync is off: a power failure loses acknowledged events, and may destroy the database")
	case !s.FullPageWrites:
		return fail("set full_page_writes = on in postgresql.conf and reload it", "full_page_writes is off: a power failure may destroy the database")
	case s.SynchronousCommit == "off":
		return warn("set synchronous_commit = on for this user and database, so that other programs are safe too",
			"synchronous_commit is off; the nodes turn it on for themselves")
	case s.Standbys != "" && s.SynchronousCommit == "local":
		return warn("set synchronous_commit = on", "synchronous_commit is local: commits do not wait for the synchronous standbys, and a failover loses acknowledged events")
	}
	return ok("fsync and full_page_writes are on, synchronous_commit is %s", s.SynchronousCommit)
}

func examineAutovacuum(s postgres.Settings) finding {
	if !s.Autovacuum {
		return fail("set autovacuum = on and track_counts = on in postgresql.conf and reload it",
			"autovacuum is off: tables grow and get slow, and in the end the database takes no more writes")
	}
	return ok("autovacuum is on")
}

// Differences between the clocks. Leases go by the database's clock alone; the times of events, attempts and signatures do not.
const (
	skewNoticed  = time.Second
	skewTooLarge = time.Minute // receivers refuse signatures that are some minutes off
)

func examineSkew(s postgres.Settings) finding {
	direction, off := "ahead of", s.Ahead
	if off < 0 {
		direction, off = "behind", -off
	}
	const advice = "set both clocks by NTP; one of them is wrong"
	text := fmt.Sprintf("the database's clock is %s %s this machine's (± %s)", off.Round(time.Millisecond), direction, s.Uncertain.Round(time.Millisecond))
	switch sure := off - s.Uncertain; {
	case sure > skewTooLarge:
		return fail(advice, "%s", text)
	case sure > skewNoticed:
		return warn(advice, "%s", text)
	}
	return ok("%s", text)
}

// examineConnections compares the connections that all nodes may use with those that the server admits.
func examineConnections(s postgres.Settings, budget, nodes int) finding {
	all := budget * max(nodes, 1)
	switch {
	case budget > s.Admitted:
		return fail("raise that, or lower store-connections", "this node may use %d connections, and the server admits %d to this user (%s)", budget, s.Admitted, s.AdmittedBy)
	case all > s.Admitted:
		return warn("raise that, or lower store-connections of the nodes", "%d nodes with %d connections each may use %d, and the server admits %d to this user (%s)",
			nodes, budget, all, s.Admitted, s.AdmittedBy)
	}
	return ok("%d of %d that the server admits (%s) for %d nodes; %d are in use", all, s.Admitted, s.AdmittedBy, max(nodes, 1), s.Used)
}

// members lists the running nodes.
func (e *examination) members() ([]godwit.Member, error) {
	if !e.stored {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(e.env.ctx, databaseTimeout)
	defer cancel()
	st, err := app.OpenStore(ctx, &e.cfg.Storage, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer st.Close()
	c, err := st.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.Members, func(m godwit.Member) bool { return !m.Alive }), nil
}

// alive counts the running nodes. An error shows in the check of nodes.
func (e *examination) alive() int {
	running, _ := e.members()
	return len(running)
}

// nodes finds nodes of different versions, and nodes whose schema is older than the database's.
func (e *examination) nodes() finding {
	running, err := e.members()
	if err != nil {
		return fail("", "%v", err)
	}
	if len(running) == 0 {
		return ok("none runs")
	}
	own := telemetry.Build().Version
	same := true
	var list []string
	for _, m := range running {
		same = same && m.Version == own
		list = append(list, m.Name+" "+m.Version)
	}
	if !same {
		return warn("finish the upgrade: restart the others with one version", "this program is %s; running: %s", own, strings.Join(list, ", "))
	}
	return ok("%d, all %s", len(running), own)
}
