package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apply"
)

// ErrPending ends a command that found work to do and did not do it. The command has printed everything already.
var ErrPending = errors.New("there are changes to make")

// ErrReported ends a command with failure. The command has printed everything already.
var ErrReported = errors.New("failed")

// ApplyCommand makes a server as files describe it.
type ApplyCommand struct {
	Files       []string `name:"file" short:"f" sep:"none" help:"File or directory to read; - for standard input. May be given more than once." placeholder:"FILE|DIR"`
	Prune       bool     `name:"prune" help:"Delete what the files do not have; see below what that covers."`
	DryRun      bool     `name:"dry-run" help:"Show the difference and change nothing. The exit status is 3 if there is one."`
	Yes         bool     `name:"yes" short:"y" help:"Delete without asking."`
	Force       bool     `name:"force" help:"Store schemas that do not keep to the declared compatibility."`
	SecretsTo   string   `name:"secrets-to" help:"Add the secrets that the server makes for new endpoints and sources to this file, one JSON object a line. Without it they are not kept." placeholder:"FILE"`
	All         bool     `name:"all" help:"Show every object that is created. Defaults to the first 20 of each kind."`
	JSON        bool     `name:"json" help:"Print the changes as JSON objects, one a line."`
	Schema      bool     `name:"schema" help:"Print the JSON Schema of the files, for editors, and do nothing else."`
	Concurrency int      `name:"concurrency" help:"How many changes are under way at a time." default:"16" placeholder:"N"`

	approvalFlags `embed:""`
	Connection    `embed:""`
}

// Help returns the text that --help shows.
func (ApplyCommand) Help() string {
	return `Reads YAML files with environments, event types, tenants, endpoints and sources, shows how the server differs, and makes it as the files
say. What is the same already is not written, so the command can be repeated; if it breaks off, run it again. Objects of the server
that the files do not have stay, unless --prune is given.

    environments:
      staging: {name: Staging, event_validation: strict}
    ---
    environment: staging
    event_types:
      order.paid: {schema: {file: schemas/order.paid.json}}
    tenants:
      acme:
        name: Acme Inc.
        endpoints:
          orders: {url: "https://acme.example/hooks", patterns: ["order.*"], secret: {env: ACME_SECRET}}

The members are those of the API's PUT requests. Secrets are never in the files: {env: NAME} takes one from an environment variable,
{file: PATH} from a file. docs/platform.md describes the files.

--prune deletes only from lists that the files have: endpoints (with a uid), sources and own event types of a tenant whose list is in the
files, and tenants (with a uid) and shared event types of an environment that is itself in the files under environments. It asks first. The
deletion of a tenant needs the approval of a second key: --approver-context.

The exit status is 0 if the server is as the files say, 1 if something failed, and with --dry-run 3 if something differs.

Examples:

    godwit apply -f platform/ --dry-run
    godwit apply -f platform/
    godwit apply -f platform/ --prune
    godwit apply -f tenants/acme.yaml --environment staging --secrets-to acme.jsonl
    godwit apply --schema > .vscode/godwit.schema.json`
}

// shownCreations is how many new objects of a kind a plan shows.
const shownCreations = 20

// Run applies the files.
func (c *ApplyCommand) Run(s *Session) error {
	if c.Schema {
		text, err := apply.Schema()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.Stdout, string(text))
		return err
	}
	if len(c.Files) == 0 {
		return errors.New("nothing to apply: name a file or directory with -f")
	}
	files, err := apply.Load(c.Files, s.Stdin)
	if err != nil {
		return err
	}
	server, cl, err := c.server(s)
	if err != nil {
		return err
	}
	environment, err := c.environment(s)
	if err != nil {
		return err
	}
	plan, err := apply.MakePlan(s.Context, server, files, apply.Options{
		Environment: environment, Prune: c.Prune, Secrets: apply.Secrets{Lookup: s.Lookup},
	})
	if err != nil {
		return err
	}
	if err := c.show(s, plan); err != nil {
		return err
	}
	changes := plan.Count(apply.Create) + plan.Count(apply.Update) + plan.Count(apply.Delete)
	switch {
	case c.DryRun && changes > 0:
		s.say("%s", plan.Summary())
		return ErrPending
	case c.DryRun || changes+plan.Count(apply.Check) == 0:
		s.say("%s", plan.Summary())
		return nil
	}
	return c.execute(s, server, cl, plan)
}

// server connects to the server without a tenant: the files name tenants.
func (c *ApplyCommand) server(s *Session) (*apply.Server, *client.Client, error) {
	cl, err := declarative(s, &c.Connection, c.Concurrency)
	if err != nil {
		return nil, nil, err
	}
	return apply.NewServer(cl), cl, nil
}

// declarative returns a client for many requests at a time, which names no tenant of its own.
func declarative(s *Session, conn *Connection, concurrency int) (*client.Client, error) {
	target, err := conn.Resolve(s)
	if err != nil {
		return nil, err
	}
	target.Tenant, target.Environment = "", "" // each object names its own
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = max(concurrency, 1) + 4
	return target.Client(client.WithHTTPClient(&http.Client{Transport: transport}))
}

func (c *ApplyCommand) show(s *Session, plan *apply.Plan) error {
	for _, note := range plan.Notes {
		s.say("%s", note)
	}
	if c.JSON {
		e := json.NewEncoder(s.Stdout)
		for _, change := range plan.Changes {
			if change.Action == apply.Check {
				continue
			}
			if err := e.Encode(change); err != nil {
				return err
			}
		}
		return nil
	}
	return c.printer(s).Show(plan)
}

func (c *ApplyCommand) printer(s *Session) *apply.Printer {
	_, plainText := s.Lookup("NO_COLOR")
	p := &apply.Printer{Out: s.Stdout, Color: s.Width > 0 && !plainText, Most: shownCreations}
	if c.All {
		p.Most = 0
	}
	return p
}

// execute carries out the plan, and asks before it deletes.
func (c *ApplyCommand) execute(s *Session, server *apply.Server, cl *client.Client, plan *apply.Plan) error {
	if n := plan.Count(apply.Delete); n > 0 {
		if err := s.confirm(c.Yes, fmt.Sprintf("%s. Delete %d objects?", plan.Summary(), n)); err != nil {
			return err
		}
	}
	approve, err := c.tenantApprover(s, plan)
	if err != nil {
		return err
	}
	secrets, err := openSecrets(c.SecretsTo)
	if err != nil {
		return err
	}
	defer secrets.close()
	progress := newProgress(s, len(plan.Changes))
	defer progress.stop()
	printer := c.printer(s)
	runner := &apply.Runner{
		Server: server, ID: rand.Text(), Concurrency: c.Concurrency, Force: c.Force,
		DeleteTenant: func(ctx context.Context, id string) error {
			steps := &twoSteps{s: s, part: cl.Resource(tenants.path).Of(id), method: http.MethodDelete, yes: true, approve: approve}
			_, err := steps.run("")
			return err
		},
		Done: func(change *apply.Change, issued *apply.Issued, err error) {
			progress.step()
			secrets.write(issued)
			if change.Action == apply.Check && err == nil && change.Changed {
				progress.clear()
				printer.ShowOne(change)
			}
		},
	}
	result := runner.Run(s.Context, plan)
	progress.stop()
	for _, f := range result.Failed {
		s.say("%s", f)
	}
	secrets.report(s)
	s.say("%s", result.Summary(plan.Same))
	switch {
	case secrets.failed != nil:
		return fmt.Errorf("write %s: %w", c.SecretsTo, secrets.failed)
	case len(result.Failed) > 0:
		s.say("run the command again when it is mended: what is done stays done")
		return ErrReported
	case result.Skipped > 0:
		s.say("stopped; run the command again to go on")
		return ErrReported
	}
	return nil
}

// tenantApprover returns the approval of the second key that the deletion of tenants needs. It is asked for before anything is changed.
func (c *ApplyCommand) tenantApprover(s *Session, plan *apply.Plan) (func(string) (string, error), error) {
	approve, err := c.approver(s)
	if err != nil {
		return nil, err
	}
	if n := plan.DeletedTenants(); n > 0 && approve == nil {
		return nil, fmt.Errorf("%d tenants would be deleted, which a second admin key has to approve: name its context with --approver-context, or describe the tenants in the files", n)
	}
	return approve, nil
}

// secretsFile takes secrets that are shown once.
type secretsFile struct {
	file   io.WriteCloser // nil: they are only counted
	lost   int
	unseen int // the answer did not arrive
	kept   int
	failed error
}

func openSecrets(name string) (*secretsFile, error) {
	if name == "" {
		return &secretsFile{}, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &secretsFile{file: f}, nil
}

func (f *secretsFile) write(issued *apply.Issued) {
	switch {
	case issued == nil:
	case issued.Secret == nil:
		f.unseen++
	case f.file == nil:
		f.lost++
	default:
		f.kept++
		if err := json.NewEncoder(f.file).Encode(issued); err != nil && f.failed == nil {
			f.failed = err
		}
	}
}

func (f *secretsFile) close() {
	if f.file != nil {
		f.file.Close()
	}
}

func (f *secretsFile) report(s *Session) {
	if f.unseen > 0 {
		s.say("the answers with the secrets of %d new endpoints and sources were lost; \"godwit endpoints rotate\" and \"godwit sources rotate\" show new ones", f.unseen)
	}
	switch {
	case f.lost > 0:
		s.say("the server made secrets for %d new endpoints and sources; --secrets-to would have kept them. \"godwit endpoints rotate\" shows a new one", f.lost)
	case f.kept > 0:
		s.say("the secrets of %d new endpoints and sources are in the file", f.kept)
	}
}

// progress tells on a terminal how far a run is.
type progress struct {
	s     *Session
	total int
	mu    sync.Mutex
	done  int
	last  time.Time
	shown bool
}

func newProgress(s *Session, total int) *progress {
	return &progress{s: s, total: total, last: s.Now()}
}

// step counts a change. It writes a line once a second.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if now := p.s.Now(); p.s.Width > 0 && now.Sub(p.last) >= time.Second {
		p.last, p.shown = now, true
		fmt.Fprintf(p.s.Stderr, "\r%d of %d", p.done, p.total)
	}
}

// clear removes the line, for another that follows.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.s.Stderr, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) stop() { p.clear() }
