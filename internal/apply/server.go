package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/client"
)

// firstEnvironment is the id of the environment that every server has.
const firstEnvironment = "env_00000000-0000-7000-8000-000000000000"

// A Server is read and changed by its API.
type Server struct {
	first  *client.Client // repeats nothing, so that a server that is not there is noticed at once
	client *client.Client
	found  map[Address]*Found
	// uids of tenants by environment and the server's id
	tenants map[string]map[string]string
	// nameless counts the endpoints without a uid, by environment
	nameless map[string]int
	mu       sync.Mutex
}

// NewServer returns the server that a client is connected to. After the first request, requests are repeated that the server puts off.
func NewServer(c *client.Client) *Server {
	return &Server{first: c, client: c.With(client.WithRetry(client.Retry{Elapsed: 2 * time.Minute})), found: map[Address]*Found{}, tenants: map[string]map[string]string{}, nameless: map[string]int{}}
}

// ErrKey reports that the API key may not list environments.
var ErrKey = errors.New("this needs a key of an environment, or the administrator's key (scope admin): a tenant's own key cannot manage tenants")

// Environments reads the environments that the key may see, and returns the uid of the one that is meant where none is named.
func (s *Server) Environments(ctx context.Context) (usual string, err error) {
	list, err := s.list(ctx, s.first.Resource(environments.path))
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		return "", fmt.Errorf("%w (%w)", ErrKey, err)
	}
	if err != nil {
		return "", fmt.Errorf("list environments: %w", err)
	}
	for _, e := range list {
		uid := text(e, "uid")
		s.add(Address{Kind: environments, ID: uid}, e)
		if len(list) == 1 || text(e, "id") == firstEnvironment {
			usual = uid
		}
	}
	return usual, nil
}

// uid returns the uid of an environment that is named by its id or uid.
func (s *Server) uid(named string) string {
	for a, f := range s.found {
		if a.Kind == environments && f.id == named {
			return a.ID
		}
	}
	return named
}

// in returns a client that acts for what owns the object at an address.
func (s *Server) in(a Address) *client.Client {
	if a.Kind == environments {
		return s.client
	}
	options := []client.Option{client.WithEnvironment(a.Environment)}
	if a.Tenant != "" {
		options = append(options, client.WithTenant(a.Tenant))
	}
	return s.client.With(options...)
}

// resource returns the object at an address.
func (s *Server) resource(a Address) *client.Resource { return s.in(a).Resource(a.Kind.path, a.ID) }

// A scope says which objects of an environment to read.
type scope struct {
	types, tenants, endpoints, sources bool
	// ownTypes reports whether the event types of a tenant's own are read.
	ownTypes func(tenant string) bool
}

// Read reads the objects of an environment, in pages.
func (s *Server) Read(ctx context.Context, environment string, want scope) error {
	in := s.client.With(client.WithEnvironment(environment))
	collect := func(k *Kind, wanted bool, take func(map[string]any)) func(context.Context) error {
		return func(ctx context.Context) error {
			if !wanted {
				return nil
			}
			list, err := s.list(ctx, in.Resource(k.path))
			if err != nil {
				return fmt.Errorf("list %ss of %s: %w", k.noun, environment, err)
			}
			for _, document := range list {
				take(document)
			}
			return nil
		}
	}
	uids := map[string]string{}
	s.tenants[environment] = uids
	var withTypes []string
	err := together(ctx,
		collect(eventTypes, want.types, func(d map[string]any) {
			s.add(Address{Kind: eventTypes, Environment: environment, ID: text(d, "name")}, d)
		}),
		collect(tenants, want.tenants, func(d map[string]any) {
			uid := text(d, "uid")
			if uids[text(d, "id")] = uid; uid == "" {
				return
			}
			s.add(Address{Kind: tenants, Environment: environment, ID: uid}, d)
			if n, _ := d["own_event_types"].(json.Number); n != "0" && want.ownTypes(uid) {
				withTypes = append(withTypes, uid)
			}
		}))
	if err != nil {
		return err
	}
	of := func(k *Kind) func(map[string]any) {
		return func(d map[string]any) {
			switch tenant, id := uids[text(d, "tenant_id")], text(d, k.own); {
			case tenant == "":
			case id == "":
				s.nameless[environment]++ // only endpoints: the name of a source is its own id
			default:
				s.add(Address{k, environment, tenant, id}, d)
			}
		}
	}
	work := []func(context.Context) error{collect(endpoints, want.endpoints, of(endpoints)), collect(sources, want.sources, of(sources))}
	for part := range slices.Chunk(withTypes, max(1, len(withTypes)/8)) {
		work = append(work, func(ctx context.Context) error {
			for _, tenant := range part {
				if err := s.ownTypes(ctx, environment, tenant); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return together(ctx, work...)
}

// ownTypes reads the event types that are a tenant's own.
func (s *Server) ownTypes(ctx context.Context, environment, tenant string) error {
	a := Address{eventTypes, environment, tenant, ""}
	list, err := s.list(ctx, s.in(a).Resource(eventTypes.path))
	if err != nil {
		return fmt.Errorf("list event types of %s/%s: %w", environment, tenant, err)
	}
	for _, d := range list {
		if shared, _ := d["shared"].(bool); !shared {
			a.ID = text(d, "name")
			s.add(a, d)
		}
	}
	return nil
}

func (s *Server) list(ctx context.Context, r *client.Resource) ([]map[string]any, error) {
	var out []map[string]any
	for item, err := range r.All(ctx, nil) {
		if err != nil {
			return nil, err
		}
		document, err := decodeObject(item)
		if err != nil {
			return nil, err
		}
		out = append(out, document)
	}
	return out, nil
}

// add remembers an object of the server.
func (s *Server) add(a Address, document map[string]any) {
	f := &Found{Address: a, id: text(document, "id"), document: document}
	if version, ok := document["version"].(json.Number); ok && a.Kind != eventTypes { // a type's version is that of its schema
		f.etag = `"` + string(version) + `"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[a] = f
}

// get reads one object anew; nil if it is not there.
func (s *Server) get(ctx context.Context, a Address) (*Found, error) {
	text, etag, err := s.resource(a).GetTagged(ctx)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	document, err := decodeObject(text)
	if err != nil {
		return nil, err
	}
	return &Found{Address: a, etag: etag, document: document}, nil
}

func decodeObject(raw []byte) (map[string]any, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	document, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("read answer: it is not an object")
	}
	return document, nil
}

func text(document map[string]any, member string) string {
	s, _ := document[member].(string)
	return s
}

// together runs functions at the same time and returns the first error.
func together(ctx context.Context, work ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, f := range work {
		all.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
