package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/godwit-hq/godwit/client"
)

// DefaultConcurrency is how many changes are under way at a time.
const DefaultConcurrency = 16

// A Runner carries out a plan.
type Runner struct {
	Server *Server
	// ID names the run. Idempotency keys are made of it, so that a request that is repeated takes effect once, and the same change in a
	// later run is a new one.
	ID string
	// Concurrency is how many changes are under way at a time. Defaults to 16.
	Concurrency int
	// Force stores schemas that do not keep to the declared compatibility.
	Force bool
	// DeleteTenant deletes the tenant with an id. It takes two steps, and the approval of a second key.
	DeleteTenant func(ctx context.Context, id string) error
	// Done, if not nil, is told of each change that ended. It is not called concurrently.
	Done func(c *Change, issued *Issued, err error)
}

// Issued is a secret that the server made for a new object.
type Issued struct {
	Address
	Secret json.RawMessage // as the API shows it; nil: the answer that showed it was lost
}

// Result counts how a run ended.
type Result struct {
	Created, Updated, Deleted int
	Unchanged                 int    // checked, and the same
	Skipped                   int    // not tried, because what they belong to failed or the run was stopped
	Failed                    Faults // with the place in the files
}

// Run carries out the changes, phase by phase. A failure does not stop changes that do not depend on it. If the context ends, no further
// change is begun.
func (r *Runner) Run(ctx context.Context, p *Plan) *Result {
	out := &Result{}
	failed := map[Address]bool{}
	for begin := 0; begin < len(p.Changes); {
		end := begin
		for end < len(p.Changes) && p.Changes[end].phase() == p.Changes[begin].phase() {
			end++
		}
		r.phase(ctx, p, p.Changes[begin:end], failed, out)
		begin = end
	}
	out.Failed.err() // sorts
	return out
}

func (r *Runner) phase(ctx context.Context, p *Plan, changes []*Change, failed map[Address]bool, out *Result) {
	var (
		mu   sync.Mutex
		all  sync.WaitGroup
		next = make(chan *Change)
	)
	for range min(max(r.Concurrency, 1), len(changes)) {
		all.Go(func() {
			for c := range next {
				changed, issued, err := r.one(ctx, p, c)
				mu.Lock()
				if c.Changed = changed; changed && c.Action == Check {
					c.Differences = []Difference{{"headers, auth", hidden{}, hidden{}}}
				}
				out.count(c, changed, err)
				if err != nil {
					failed[c.Address] = true
				}
				if r.Done != nil {
					r.Done(c, issued, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, c := range changes {
		owner, owned := c.owner()
		mu.Lock()
		skip := ctx.Err() != nil || c.Action != Delete && owned && failed[owner]
		if skip {
			out.Skipped++
			failed[c.Address] = true
		}
		mu.Unlock()
		if !skip {
			next <- c
		}
	}
	close(next)
	all.Wait()
}

func (r *Result) count(c *Change, changed bool, err error) {
	switch {
	case errors.Is(err, context.Canceled):
		r.Skipped++
	case err != nil:
		r.Failed.add(c.At, "%s %s: %v", c.Action, c.Address, err)
	case !changed:
		r.Unchanged++
	case c.Action == Create:
		r.Created++
	case c.Action == Delete:
		r.Deleted++
	default:
		r.Updated++
	}
}

// one carries out a change.
func (r *Runner) one(ctx context.Context, p *Plan, c *Change) (changed bool, issued *Issued, err error) {
	if c.Action == Delete {
		return true, nil, r.delete(ctx, c)
	}
	m := client.Match{Key: r.key(c)}
	if c.have != nil {
		if m.ETag = c.have.etag; m.ETag == "" { // lists do not show that of event types
			if m.ETag, err = r.tag(ctx, p, c); err != nil {
				return false, nil, err
			}
		}
	}
	if r.Force && c.Kind == eventTypes {
		m.Query = url.Values{"force": {"true"}}
	}
	written, err := r.Server.resource(c.Address).PutIf(ctx, c.body, m)
	if status(err) == http.StatusPreconditionFailed {
		return r.passed(ctx, p, c)
	}
	if err != nil {
		return false, nil, explained(c, err)
	}
	return written.Created || written.ETag != m.ETag, issuedIn(c, written), nil
}

// key returns the idempotency key of a change.
func (r *Runner) key(c *Change) string {
	sum := sha256.New()
	json.NewEncoder(sum).Encode([]any{r.ID, c.Action, c.Kind.path, c.Environment, c.Tenant, c.ID, c.body})
	return "apply-" + hex.EncodeToString(sum.Sum(nil)[:20])
}

// errMoved reports that an object is not as it was when the plan was made.
var errMoved = errors.New("it was changed by others meanwhile; run the command again to see the difference")

// passed looks at an object that is not as the plan expected. It may be as the files describe it: by an earlier request of this change,
// whose answer was lost.
func (r *Runner) passed(ctx context.Context, p *Plan, c *Change) (changed bool, issued *Issued, err error) {
	now, err := r.Server.get(ctx, c.Address)
	if err != nil {
		return false, nil, err
	}
	if now == nil || len(differences(c.want, now, p.environments[c.Environment])) > 0 || c.want.hasSealed() && c.Action != Create {
		return false, nil, errMoved
	}
	if c.Action == Create && (c.Kind == endpoints && c.want.document["secret"] == nil || c.Kind == sources && c.want.document["credentials"] == nil) {
		issued = &Issued{Address: c.Address}
	}
	return true, issued, nil
}

// tag reads the ETag of an object, and checks that it is as the plan found it.
func (r *Runner) tag(ctx context.Context, p *Plan, c *Change) (string, error) {
	now, err := r.Server.get(ctx, c.Address)
	switch {
	case err != nil:
		return "", err
	case now == nil || !equalDifferences(differences(c.want, now, p.environments[c.Environment]), c.Differences):
		return "", errMoved
	}
	return now.etag, nil
}

func equalDifferences(a, b []Difference) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func (r *Runner) delete(ctx context.Context, c *Change) error {
	if c.Kind == tenants {
		return r.DeleteTenant(ctx, c.have.id)
	}
	err := r.Server.resource(c.Address).Delete(ctx)
	if status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

func status(err error) int {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// explained adds what to do about a refusal.
func explained(c *Change, err error) error {
	switch {
	case status(err) == http.StatusForbidden && c.Kind == environments:
		return fmt.Errorf("%w; only the administrator's key (scope admin) can change environments", err)
	case c.Kind == eventTypes && c.Action == Update && atSchema(err):
		return fmt.Errorf("%w; --force stores a schema that does not keep to the declared compatibility", err)
	}
	return err
}

// atSchema reports whether the server refused a schema.
func atSchema(err error) bool {
	var e *client.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, f := range e.Fields {
		if strings.HasPrefix(f.Field, "schema") {
			return true
		}
	}
	return false
}

// issuedIn returns the secret that the server made for a new endpoint or source; nil if it made none.
func issuedIn(c *Change, w *client.Written) *Issued {
	member := map[*Kind]string{endpoints: "secret", sources: "issued"}[c.Kind]
	if member == "" || !w.Created || c.want.document["secret"] != nil {
		return nil
	}
	var document map[string]json.RawMessage
	if json.Unmarshal(w.Document, &document) != nil || document[member] == nil {
		return nil
	}
	return &Issued{c.Address, document[member]}
}

// MarshalJSON writes the secret with the address of its object.
func (i *Issued) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind        string          `json:"kind"`
		Environment string          `json:"environment"`
		Tenant      string          `json:"tenant"`
		ID          string          `json:"id"`
		Secret      json.RawMessage `json:"secret"`
	}{i.Kind.noun, i.Environment, i.Tenant, i.ID, i.Secret})
}
