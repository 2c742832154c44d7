package native

import (
	"encoding/base64"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// PageParams are the query parameters of every list.
type PageParams struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many items at most"`
	Cursor string `query:"cursor" maxLength:"64" doc:"next_cursor of the page before; empty or absent: the first page"`
}

// RangeParams restrict a list to a time range.
type RangeParams struct {
	Since time.Time `query:"since" doc:"At or after this time (RFC 3339)"`
	Until time.Time `query:"until" doc:"Before this time (RFC 3339)"`
}

// list is one page of a collection, newest first.
type list[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass as cursor to get the next page; absent on the last one"`
}

type listOutput[T any] struct{ Body list[T] }

// A listKind prevents the cursor of one list from being used on another.
type listKind byte

const (
	listTenants      listKind = 't'
	listKeys         listKind = 'k'
	listEnvironments listKind = 'v'
	listSubs         listKind = 's'
	listEvents       listKind = 'e'
	listDels         listKind = 'd'
	listDead         listKind = 'x'
	listNotices      listKind = 'n'
	listSources      listKind = 'o'
	listAcks         listKind = 'a'
	listRejects      listKind = 'r'
	listUsage        listKind = 'u'
	listBroadcasts   listKind = 'b'
	listResults      listKind = 'i'
	listSessions     listKind = 'g'
	listLinks        listKind = 'l'
)

const cursorVersion = 1

// cursor encodes the last item of a page. It is opaque to clients.
func cursor(kind listKind, id [16]byte) string {
	b := append([]byte{cursorVersion, byte(kind)}, id[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor reads a cursor of the given list; "" is the start of the list.
func parseCursor(kind listKind, text string) (id [16]byte, err error) {
	if text == "" {
		return id, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 18 || b[0] != cursorVersion || b[1] != byte(kind) {
		return id, problem.InvalidRequest.In("cursor", "is not a next_cursor of this list")
	}
	copy(id[:], b[2:])
	return id, nil
}

// A collection describes a list: how its items are identified, and how they are shown.
type collection[T, V any] struct {
	kind listKind
	id   func(*T) [16]byte
	view func(*T) V
}

// page reads a page and renders it. It asks the store for one item more than it shows, to learn whether there is a next
// page. Items with the same id stay on one page, because the next page starts after that id.
func (c collection[T, V]) page(p PageParams, read func(store.Page) ([]T, error)) (*listOutput[V], error) {
	after, err := parseCursor(c.kind, p.Cursor)
	if err != nil {
		return nil, err
	}
	items, err := read(store.Page{After: after, Limit: p.Limit + 1})
	if err != nil {
		return nil, err
	}
	out := &listOutput[V]{Body: list[V]{Items: make([]V, 0, min(len(items), p.Limit))}}
	for i := range items {
		if i >= p.Limit && c.id(&items[i]) != c.id(&items[i-1]) {
			out.Body.NextCursor = cursor(c.kind, c.id(&items[i-1]))
			break
		}
		out.Body.Items = append(out.Body.Items, c.view(&items[i]))
	}
	return out, nil
}

// sifted is how many items a page of a list with a filter that has no index examines: about a tenth of a second.
const sifted = 5000

// firstSifted is how many of them are read first: enough for a type that is frequent. The second read takes the rest.
const firstSifted = 1000

// sift reads a page of a list with a filter that has no index. It examines a bounded number of items; a page may then have fewer items than its limit, even none, and still a
// cursor.
func (c collection[T, V]) sift(p PageParams, read func(store.Page) ([]T, error), keep func(*T) bool) (*listOutput[V], error) {
	after, err := parseCursor(c.kind, p.Cursor)
	if err != nil {
		return nil, err
	}
	out := &listOutput[V]{Body: list[V]{Items: []V{}}}
	for _, chunk := range []int{firstSifted, sifted - firstSifted} {
		items, err := read(store.Page{After: after, Limit: chunk})
		if err != nil {
			return nil, err
		}
		for i := range items {
			if len(out.Body.Items) >= p.Limit && c.id(&items[i]) != after { // items with the same id stay on one page
				out.Body.NextCursor = cursor(c.kind, after)
				return out, nil
			}
			after = c.id(&items[i])
			if keep(&items[i]) {
				out.Body.Items = append(out.Body.Items, c.view(&items[i]))
			}
		}
		if len(items) < chunk {
			return out, nil
		}
	}
	out.Body.NextCursor = cursor(c.kind, after)
	return out, nil
}

// The collections.
var (
	tenants      = collection[godwit.Tenant, Tenant]{listTenants, func(t *godwit.Tenant) [16]byte { return t.ID }, tenantView}
	environments = collection[godwit.Environment, Environment]{listEnvironments, func(e *godwit.Environment) [16]byte { return e.ID }, environmentView}
	keys         = collection[godwit.APIKey, Key]{listKeys, func(k *godwit.APIKey) [16]byte { return k.ID }, keyView}
	sessions     = collection[godwit.Session, Session]{listSessions, func(s *godwit.Session) [16]byte { return s.ID }, sessionView}
	portalLinks  = collection[godwit.SignInLink, PortalLink]{listLinks, func(l *godwit.SignInLink) [16]byte { return l.ID }, portalLinkView}
	endpoints    = collection[godwit.Endpoint, Endpoint]{listSubs, func(e *godwit.Endpoint) [16]byte { return e.ID }, endpointView}
	events       = collection[godwit.Event, Event]{listEvents, func(e *godwit.Event) [16]byte { return e.ID }, eventView}
	deliveries   = collection[godwit.Delivery, Delivery]{listDels, func(d *godwit.Delivery) [16]byte { return d.ID }, deliveryView}
	deadLetters  = collection[godwit.DeadLetter, DeadLetter]{listDead, func(d *godwit.DeadLetter) [16]byte { return d.Delivery.ID }, deadLetterView}
	notices      = collection[godwit.Notice, Notice]{listNotices, func(n *godwit.Notice) [16]byte { return n.ID }, noticeView}
	usages       = collection[godwit.TenantUsage, TenantUsage]{listUsage, func(u *godwit.TenantUsage) [16]byte { return u.TenantID }, usageView}
	sources      = collection[godwit.Source, Source]{listSources, func(s *godwit.Source) [16]byte { return s.ID }, sourceView}

	broadcasts      = collection[godwit.Broadcast, Broadcast]{listBroadcasts, func(b *godwit.Broadcast) [16]byte { return b.ID }, broadcastView}
	results         = collection[godwit.BroadcastItem, BroadcastTenant]{listResults, func(i *godwit.BroadcastItem) [16]byte { return i.TenantID }, broadcastTenantView}
	acknowledgments = collection[godwit.Acknowledgment, Acknowledgment]{listAcks, func(a *godwit.Acknowledgment) [16]byte { return a.ID }, acknowledgmentView}
	rejections      = collection[godwit.Rejection, Rejection]{listRejects, func(j *godwit.Rejection) [16]byte { return j.ID }, rejectionView}
)

// timestamp returns a time for JSON; the zero time is left out.
func timestamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// badID returns an error that names the parameter with the invalid id.
func badID(field, example string) error {
	return problem.InvalidRequest.In(field, "must be an id of the form %s", example)
}
