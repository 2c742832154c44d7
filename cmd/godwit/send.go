package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/cli"
	"github.com/godwit-hq/godwit/internal/config"
)

// connection holds the flags of commands that call a running server.
type connection struct {
	cli.Connection `embed:""`
}

func (c *connection) client(env *environment, options ...client.Option) (*client.Client, error) {
	return c.Connection.Client(env.session(), options...)
}

type sendCommand struct {
	Type           string            `arg:"" help:"Type of the event, such as order.paid."`
	Body           string            `arg:"" optional:"" help:"Body of the event. Defaults to standard input."`
	File           string            `name:"file" short:"f" help:"Read the body from a file." placeholder:"FILE"`
	ContentType    string            `name:"content-type" help:"Media type of the body." default:"application/json" placeholder:"TYPE"`
	Attribute      map[string]string `name:"attribute" short:"a" mapsep:"none" help:"Attribute that the filters of endpoints see; may be given more than once." placeholder:"NAME=VALUE"`
	IdempotencyKey string            `name:"idempotency-key" help:"Idempotency key of 16 to 255 characters. With the same key, the command can be repeated safely. Defaults to a new key." placeholder:"KEY"`
	RetryFor       config.Duration   `name:"retry-for" help:"How long to retry when the answer is lost or the server is busy; 0s for no retry." default:"30s" placeholder:"DURATION"`
	Tenants        []string          `name:"tenants" complete:"tenants" help:"Send the event to each of these tenants, by id or uid, with the key of their environment: a broadcast." placeholder:"TENANT,…" xor:"tenants"`
	AllTenants     bool              `name:"all-tenants" help:"Send the event to each tenant of the environment that has an endpoint for it." xor:"tenants"`
	NoWait         bool              `name:"no-wait" help:"Do not wait until every tenant of a broadcast has its event."`
	JSON           bool              `name:"json" help:"Print the server's answer as JSON."`
	connection     `embed:""`
}

// Help returns the text that --help shows.
func (sendCommand) Help() string {
	return `The body is sent byte for byte. The command succeeds once the event is stored durably, and prints the event's id.

An answer that is lost, 409 while the same request is under way, 429 and 5xx are reasons to try again, with the same
Idempotency-Key, so that one event is stored however often it takes. What the server refuses (400, 401, 422 and so on) is not
repeated: it needs a correction.

Examples:

    export GODWIT_KEY=gdw_…
    godwit send order.paid '{"order":42}'
    godwit send report.ready --file report.pdf --content-type application/pdf
    date | godwit send clock.tick --content-type text/plain
    godwit send order.paid '{"order":42}' --attribute region=eu --idempotency-key order-42-paid-000001
    godwit send plan.changed '{"plan":"2027"}' --tenants customer-1,customer-2
    godwit send plan.changed '{"plan":"2027"}' --all-tenants`
}

func (c *sendCommand) Run(env *environment) error {
	body, err := c.body(env)
	if err != nil {
		return err
	}
	var options []client.Option
	if c.RetryFor > 0 {
		options = append(options, client.WithRetry(client.Retry{Elapsed: c.RetryFor.Real(), Max: 1000}))
	}
	cl, err := c.client(env, options...)
	if err != nil {
		return err
	}
	event := client.Event{Type: c.Type, ContentType: c.ContentType, Body: body, Attributes: c.Attribute, IdempotencyKey: c.IdempotencyKey}
	if c.AllTenants || len(c.Tenants) > 0 {
		return c.broadcast(env, cl, event)
	}
	r, err := cl.Publish(env.ctx, event)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if c.JSON {
		return printJSON(env.stdout, r)
	}
	fmt.Fprintln(env.stdout, r.ID)
	if r.Deliveries == 0 {
		fmt.Fprintln(env.stderr, "stored, but no endpoint of this tenant wants events of this type")
	}
	return nil
}

func (c *sendCommand) body(env *environment) ([]byte, error) {
	switch {
	case c.Body != "" && c.File != "":
		return nil, errors.New("give the body as an argument or by --file, not both")
	case c.Body != "":
		return []byte(c.Body), nil
	case c.File != "":
		return os.ReadFile(c.File)
	}
	if f, ok := env.stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprintln(env.stderr, "reading the body from the terminal; end it with Ctrl-D")
	}
	return io.ReadAll(env.stdin)
}
