package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/godwit-hq/godwit/client"
)

// A resource describes a noun of the command line.
type resource struct {
	noun   string // singular
	path   string // of the collection in the API, below /v1
	idPath string // of the member that identifies an item; empty: "id"
	// columns of the table.
	columns []column
	// parts are the members of a document that are shown as tables, with their columns.
	parts map[string][]column
	verbs map[string]verb
	// details are the texts that --help and the man page show, by verb; "" for the noun itself.
	details map[string]string
	// jsonArray prints lists as one JSON array, not as lines.
	jsonArray bool
	// whole lists show all items unless --limit is given.
	whole bool
}

// A verb is an operation on one item other than get, update and delete.
type verb struct {
	method string   // empty: POST
	part   string   // below the item, such as "pause"
	list   []column // the answer has items, with these columns
	row    bool     // the answer is an item of the noun, shown as a row
}

// resources are the nouns by their name on the command line. Another noun needs an entry here and a member of Nouns.
var resources = map[string]*resource{
	"environments": environments,
	"tenants":      tenants,
	"endpoints":    endpoints,
	"events":       events,
	"broadcasts":   broadcasts,
	"deliveries":   deliveries,
	"dead-letters": deadLetters,
	"sources":      sources,
	"types":        types, // in cmd/godwit, beside the import and export of types
	"keys":         keys,  // in cmd/godwit, beside the commands that work on the store
	"notices":      notices,
	"usage":        usages,
	"sessions":     sessions,
	"portal-links": portalLinks,
}

// Nouns are the commands for the nouns.
type Nouns struct {
	Environments environmentsCommand `cmd:"" group:"manage" help:"List, create, change and delete environments."`
	Tenants      tenantsCommand      `cmd:"" group:"manage" help:"List, create, change and delete tenants."`
	Endpoints    endpointsCommand    `cmd:"" group:"manage" help:"List, create, change, test and delete endpoints."`
	Events       eventsCommand       `cmd:"" group:"manage" help:"List, show and replay events."`
	Broadcasts   broadcastsCommand   `cmd:"" group:"manage" help:"List events that were sent to many tenants, and show who got them."`
	Deliveries   deliveriesCommand   `cmd:"" group:"manage" help:"List, show, retry and cancel deliveries."`
	DeadLetters  deadLettersCommand  `cmd:"" group:"manage" help:"List, show, replay, export and purge dead letters."`
	Sources      sourcesCommand      `cmd:"" group:"manage" help:"List, create, change and delete sources of upstreams."`
	Notices      noticesCommand      `cmd:"" group:"manage" help:"List and acknowledge notices."`
	Usage        usageCommand        `cmd:"" group:"manage" help:"Show what tenants used, by tenant or by day."`
	Sessions     sessionsCommand     `cmd:"" group:"manage" help:"List and end sessions of browsers."`
	PortalLinks  portalLinksCommand  `cmd:"" group:"manage" help:"Create, list and revoke links to the portals of tenants."`
	Dashboard    dashboardCommand    `cmd:"" group:"manage" help:"Print a link that opens the dashboard signed in."`
	Settings     settingsCommand     `cmd:"" group:"manage" help:"Show the configuration of a running server."`
	Stats        statsCommand        `cmd:"" group:"manage" help:"Show counts and latencies over time, causes of failures, and what waits."`
}

func (r *resource) id(item []byte) string {
	path := r.idPath
	if path == "" {
		path = "id"
	}
	return idOf(item, path)
}

// uid is the member with the id that an item's owner chose.
func (r *resource) uid() string {
	if r == sources {
		return "name"
	}
	return "uid"
}

// plural names several items.
func (r *resource) plural() string {
	switch r.noun {
	case "delivery":
		return "deliveries"
	case "usage":
		return "usage"
	}
	return r.noun + "s"
}

// noun returns the resource of the command that runs, and the name of its verb.
func (s *Session) noun() (*resource, string, error) {
	path := s.path()
	if len(path) < 2 || resources[path[0]] == nil {
		return nil, "", fmt.Errorf("the command %q has no definition", strings.Join(path, " "))
	}
	return resources[path[0]], path[1], nil
}

// Describe fills in the detailed help of the nouns and their verbs. It is a kong.PostBuild function.
func Describe(k *kong.Kong) error {
	for _, n := range k.Model.Children {
		r := resources[n.Name]
		if r == nil {
			continue
		}
		if text := r.details[""]; text != "" {
			n.Detail = text
		}
		for _, v := range n.Children {
			if text := r.details[v.Name]; text != "" {
				v.Detail = text
			}
		}
	}
	return nil
}

// searched is how many items are compared with a shortened id.
const searched = 2000

// find returns the whole id of one that a table has shortened; other text is returned unchanged.
func (r *resource) find(ctx context.Context, cl *client.Client, given string) (string, error) {
	begin, end, shortened := strings.Cut(given, "…")
	if !shortened {
		return given, nil
	}
	var found []string
	n := 0
	for item, err := range cl.Resource(r.path).All(ctx, nil) {
		if err != nil {
			return "", fmt.Errorf("look for %s: %w", given, err)
		}
		if id := r.id(item); strings.HasPrefix(id, begin) && strings.HasSuffix(id, end) {
			found = append(found, id)
		}
		if n++; n >= searched {
			break
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("no %s among the newest %d is called %s; give the whole id, as --json shows it", r.noun, searched, given)
	}
	return "", fmt.Errorf("%s may be any of %s; give the whole id", given, strings.Join(found, ", "))
}
