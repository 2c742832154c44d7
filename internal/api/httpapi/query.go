package httpapi

import (
	"maps"
	"net/url"
	"slices"

	"github.com/godwit-hq/godwit/internal/problem"
)

// NoParameters is the list of an operation that takes no query parameters.
var NoParameters = []string{}

// ReadQuery reads a query. It allows every name if allowed is nil. It rejects parameters that are not allowed, empty or repeated, and a query that cannot be parsed.
// If it ignored one of these, the filter would not be the one that the client meant, and might select everything.
func ReadQuery(u *url.URL, allowed []string) (url.Values, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, problem.InvalidRequest.In("query", "is not a valid query string")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch values := query[name]; {
		case allowed != nil && !slices.Contains(allowed, name):
			return nil, problem.InvalidRequest.In(Clip(name), "is not a parameter of this operation")
		case len(values) > 1:
			return nil, problem.InvalidRequest.In(Clip(name), "must be given once")
		case values[0] == "" && name != "cursor": // an empty cursor means the first page
			return nil, problem.InvalidRequest.In(Clip(name), "must not be empty; leave the parameter out")
		}
	}
	return query, nil
}
