package native

import (
	"context"
	"errors"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// An endpointFinder reads the ids of endpoints in requests, in the form of any API (decision 6).
type endpointFinder struct {
	endpoints interface {
		Resolve(ctx context.Context, tenant godwit.TenantID, text string) (*godwit.Endpoint, error)
	}
}

// id returns the id that a text names. Only a public id or a uid needs a lookup; id does not check that any other endpoint exists.
func (f endpointFinder) id(ctx context.Context, c *management.Caller, field, text string) (godwit.EndpointID, error) {
	if id, err := godwit.ParseEndpointID(text); err == nil {
		return id, nil
	}
	e, err := f.endpoint(ctx, c, field, text)
	if err != nil {
		return godwit.EndpointID{}, err
	}
	return e.ID, nil
}

// endpoint returns the endpoint that a text names.
func (f endpointFinder) endpoint(ctx context.Context, c *management.Caller, field, text string) (*godwit.Endpoint, error) {
	if !plausibleEndpoint(text) {
		return nil, badID(field, "sub_…")
	}
	return f.endpoints.Resolve(ctx, c.Tenant.ID, text)
}

// filter returns the endpoint that a filter names; zero if it names none.
func (f endpointFinder) filter(ctx context.Context, c *management.Caller, text string) (godwit.EndpointID, error) {
	if text == "" {
		return godwit.EndpointID{}, nil
	}
	id, err := f.id(ctx, c, "endpoint", text)
	return id, missing("endpoint", "endpoint", err)
}

// plausibleEndpoint reports whether text could be an id; other text is a mistake in the caller's program. A mistyped public
// id is plausible, and gets 404.
func plausibleEndpoint(text string) bool {
	if _, err := godwit.ParseEndpointID(text); err == nil || management.ValidUID(text) {
		return true
	}
	text = strings.TrimSpace(text)
	return len(text) == len("WEB-XXXXXX-X") && strings.EqualFold(text[:4], profile.CodeEndpoint+"-")
}

// sameUID refuses a uid in the body that is not the one in the path. Where the path has an id, the body may give another uid.
func sameUID(uid, named string) error {
	if uid == "" || uid == named || strings.IndexByte(named, '_') == 3 || strings.HasPrefix(named, profile.CodeEndpoint+"-") {
		return nil
	}
	return problem.InvalidRequest.In("uid", "must be the one in the path, or absent")
}

// missing returns an error that names the member whose object does not exist.
func missing(field, noun string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.Invalid.In(field, "names no %s of this tenant", noun)
	}
	return err
}
