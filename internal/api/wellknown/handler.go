package wellknown

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Keys finds signing keys. PublicKeys and PublicKey return them without their private part.
type Keys interface {
	Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error)
	PublicKeys(ctx context.Context, now time.Time, after godwit.SecretID, limit int) ([]godwit.Secret, error)
	PublicKey(ctx context.Context, id godwit.SecretID) (*godwit.Secret, error)
	EnvironmentKeys(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)
}

// Config holds the contents of the pages.
type Config struct {
	Keys        Keys
	Ring        *keyring.Ring // decrypts the keys that sign the directory
	Authority   string        // host and port under which receivers reach the server; the directory is signed for it
	Idempotency *idempotency.Guard
	Problems    *problem.Writer
	Now         func() time.Time
	// Addresses are the addresses that deliveries come from, for receivers that allow no others.
	Addresses []netip.Prefix
	// Service is the description for upstreams. Defaults to no such page.
	Service *Service
}

// New returns the handler. Mount it at /docs/, DirectoryPath, AddressesPath and ServicePath.
func New(cfg Config) (httpapi.Router, error) {
	if cfg.Keys == nil || cfg.Ring == nil || cfg.Idempotency == nil || cfg.Problems == nil || cfg.Now == nil {
		return nil, errors.New("well-known pages: keys, ring, idempotency, problems and now are required")
	}
	idempotencyPage, err := render(idempotencyTemplate, newSpecification(cfg.Idempotency.Policy()))
	if err != nil {
		return nil, err
	}
	problemsPage, err := render(problemsTemplate, problem.Kinds())
	if err != nil {
		return nil, err
	}
	sources, err := newAddresses(cfg.Addresses, cfg.Now())
	if err != nil {
		return nil, err
	}
	mux := httpapi.NewMux()
	mux.HandleFunc("GET "+problem.PageIdempotency, page(idempotencyPage))
	mux.HandleFunc("GET "+problem.PageProblems, page(problemsPage))
	mux.Handle("GET "+DirectoryPath, newDirectory(cfg))
	mux.Handle("GET "+AddressesPath, sources)
	if cfg.Service != nil {
		described, err := newService(cfg.Service, cfg.Idempotency.Policy())
		if err != nil {
			return nil, err
		}
		mux.Handle("GET "+ServicePath, described)
	}
	mux.Otherwise(func(w http.ResponseWriter, r *http.Request) {
		probe := *r
		probe.Method = http.MethodGet
		if _, pattern := mux.Handler(&probe); pattern != "/" {
			cfg.Problems.Write(w, r, problem.MethodNotAllowed.With("this page can be read").WithHeader("Allow", "GET, HEAD"))
			return
		}
		cfg.Problems.Write(w, r, problem.NotFound.With("there is no such page"))
	})
	return mux, nil
}
