package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/bench"
	"github.com/godwit-hq/godwit/internal/config"
)

type benchCommand struct {
	Store       string        `name:"store" local:"" help:"\"sqlite\" for a temporary file; \"postgres\" for a database of its own on the server named by GODWIT_TEST_POSTGRES; or the URL of a PostgreSQL database, which is filled." default:"sqlite" placeholder:"sqlite|postgres|URL"`
	What        string        `arg:"" optional:"" help:"The scenario; the same as --scenario."`
	Scenario    string        `name:"scenario" help:"What to measure: ${enum}." enum:"throughput,latency,tls,many,large,fanout,neighbour,backlog,waiting,isolation,profiles,nodes,restart,tenants,idle,commands" default:"throughput" placeholder:"NAME"`
	Profile     string        `name:"profile" help:"Profile of the endpoint, its rate limits lifted: ${enum}." enum:"eds,ojs,cybercube,standard-webhooks" default:"eds" placeholder:"NAME"`
	Connections int           `name:"connections" help:"Number of clients that post at the same time." default:"64" placeholder:"N"`
	Size        int           `name:"size" help:"Size of an event in bytes." default:"1024" placeholder:"N"`
	Events      int           `name:"events" help:"Largest number of events in each measurement. Defaults to as many as fit in the time." placeholder:"N"`
	Seconds     float64       `name:"seconds" help:"Approximate length of the whole run in seconds." default:"30" placeholder:"N"`
	Rate        float64       `name:"rate" help:"Events per second in the latency measurement. Defaults to half of the measured throughput." placeholder:"N"`
	Backlog     int           `name:"backlog" help:"Deliveries that wait for a dead endpoint in the scenarios backlog and waiting. Defaults to 1000000 and 10000000." placeholder:"N"`
	Endpoints   int           `name:"endpoints" help:"Endpoints of the scenarios fanout, restart, many, neighbour and tenants. Defaults to 10000, 10000, 1000, 1000 and 30000." placeholder:"N"`
	Nodes       int           `name:"nodes" help:"Server processes in the scenario nodes." default:"3" placeholder:"N"`
	Held        time.Duration `name:"held-transaction" help:"How long the scenario nodes holds a transaction open in the database, such as 10m. Defaults to not at all." placeholder:"DURATION"`
	CPUProfile  string        `name:"cpu-profile" help:"Write a CPU profile of the server at full load to a file, for go tool pprof." placeholder:"FILE"`
	JSON        bool          `name:"json" help:"Print the report as one JSON object, on the last line."`
}

// Help returns the text that --help shows.
func (benchCommand) Help() string {
	return `Starts "godwit serve" as a process of its own on a temporary store, and beside it a load generator and a sink. In the
same run and with the same tool it measures two baselines: the generator posting straight to the sink (raw), and through
a relay that keeps events in memory only (not durable). The ratios tell what durability, signing and recording cost here.

    throughput  baselines, full load, then latency at half of it
    latency     post to arrival at a fixed rate (--rate)
    tls         endpoints over https, by HTTP/1.1 and by HTTP/2, sessions resumed, beside plain http
    many        1,000 endpoints, one event each in turn, beside one endpoint
    large       bodies of 256 KiB, beside those of --size
    fanout      one event to 10,000 endpoints, one after the other
    backlog     memory and speed with --backlog deliveries waiting for a dead endpoint
    waiting     the same with 10 million that are there when the server starts: start-up, memory, rate, p99
    isolation   a healthy endpoint beside one that hangs and one that answers 500
    neighbour   a tenant's posts while another's batch of --events goes to --endpoints endpoints, beside its posts alone
    profiles    every profile by turns on one server, and what each costs beside eds
    nodes       --nodes servers on one PostgreSQL database, producers spread over them, beside one server
    restart     a server restarted under load, in order and killed: when does the new process acknowledge?
    tenants     10,000 tenants with 3 endpoints each: start-up, memory, and posts by a key of their environment for one and for all
    idle        memory of a server with nothing to do
    commands    commands executed and duplicates replayed, beside a bare insert into the same kind of store

Examples:

    godwit bench
    godwit bench --store postgres://postgres@127.0.0.1/bench --seconds 60
    godwit bench --scenario profiles --seconds 60
    godwit bench --scenario latency --rate 2000 --json | tail -n 1
    godwit bench --scenario backlog --backlog 100000
    godwit bench tls --seconds 60
    godwit bench fanout
    godwit bench neighbour --seconds 60
    godwit bench nodes --store postgres --seconds 60
    godwit bench commands`
}

func (c *benchCommand) Run(env *environment) error {
	if c.What != "" {
		c.Scenario = c.What
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	store, drop, err := c.store(env)
	if err != nil {
		return err
	}
	defer drop()
	progress := env.stdout
	if c.JSON {
		progress = env.stderr
	}
	report, err := bench.Run(env.ctx, bench.Options{
		Executable: executable, Store: store, Scenario: c.Scenario, Profile: c.Profile, Connections: c.Connections, Size: c.Size, Events: c.Events,
		Length: time.Duration(c.Seconds * float64(time.Second)), Rate: c.Rate, Backlog: c.Backlog, Endpoints: c.Endpoints, CPUProfile: c.CPUProfile, Nodes: c.Nodes, HeldTransaction: c.Held,
		Progress: func(format string, args ...any) {
			fmt.Fprintf(progress, time.Now().Format("15:04:05")+"  "+format+"\n", args...)
		},
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(report)
	}
	return report.Print(env.stdout)
}

// store returns the store of the server under test.
func (c *benchCommand) store(env *environment) (store string, drop func(), err error) {
	nothing := func() {}
	s := config.Storage{Data: "-", Store: c.Store}
	switch {
	case c.Store == "postgres":
		return temporaryDatabase(env)
	case s.Check() != nil:
		return "", nothing, errors.New("--store must be \"sqlite\", \"postgres\" or a URL such as postgres://user@host/name")
	}
	return c.Store, nothing, nil
}

const testServer = "GODWIT_TEST_POSTGRES"

// temporaryDatabase creates a database on the test server, and returns a function that drops it.
func temporaryDatabase(env *environment) (string, func(), error) {
	server, _ := env.lookup(testServer)
	if server == "" {
		return "", nil, errors.New("--store postgres needs a server: set " + testServer + " to a superuser's URL, such as " +
			"postgres://postgres@127.0.0.1:5432/postgres, or give --store the URL of a database that the bench may fill")
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, errors.New(testServer + " is not a URL")
	}
	name := "godwit_bench_" + strings.ToLower(rand.Text())
	if err := onServer(env.ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", nil, fmt.Errorf("create a database for the bench: %w", err)
	}
	u.Path = "/" + name
	return u.String(), func() {
		// A signal may have ended the bench's own context; the database must be dropped anyway.
		if err := onServer(context.WithoutCancel(env.ctx), server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			fmt.Fprintln(env.stderr, "godwit: drop the bench's database:", err)
		}
	}, nil
}

func onServer(ctx context.Context, server, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return errors.New("the server cannot be reached") // the driver's error may quote a password
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// benchRelayCommand runs the baseline as a separate process.
type benchRelayCommand struct {
	Target []string `name:"target" required:"" help:"Where to forward to."`
	Copies int      `name:"copies" help:"How often to forward each post."`
	CAFile string   `name:"ca-file" local:"" help:"Certificate authority of the targets."`
}

func (c *benchRelayCommand) Run(env *environment) error {
	l, err := (&net.ListenConfig{}).Listen(env.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(env.stdout).Encode(map[string]string{"url": "http://" + l.Addr().String()}); err != nil {
		return err
	}
	return bench.Relay(env.ctx, l, bench.RelayOptions{Targets: c.Target, Copies: c.Copies, CAFile: c.CAFile})
}
