package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// PortalHeader is sent by pages of the portal: 1 in a tab of their own, frame in a frame of another page. It says which cookie counts. EnvironmentHeader has to name the
// environment of the page beside it, by id.
const PortalHeader = "Godwit-Portal"

// PortalInFrame is the value of PortalHeader in a frame.
const PortalInFrame = "frame"

// A Browser reads and writes the cookies of sessions, and refuses requests that pages of other sites make with them.
type Browser struct {
	public  *url.URL // where browsers reach the server
	fixed   bool     // public is configured
	trusted []netip.Prefix
}

// NewBrowser returns a Browser for a server. public is its URL, and configured says that the operator has set it. trusted are the addresses of
// proxies whose X-Forwarded-For is believed.
func NewBrowser(public string, configured bool, trusted []netip.Prefix) (*Browser, error) {
	u, err := url.Parse(public)
	if err != nil {
		return nil, fmt.Errorf("public URL: %w", err)
	}
	return &Browser{public: u, fixed: configured, trusted: trusted}, nil
}

// URL returns the URL of a page.
func (b *Browser) URL(path string) string { return strings.TrimSuffix(b.public.String(), "/") + path }

func (b *Browser) secure() bool { return b.public.Scheme == "https" }

// A Place is where a page runs; each has a cookie of its own. The zero value is the dashboard.
//
// The portals of two environments are two places. Each environment says which pages may frame its portal: such a page must not be able to show, and to let its user click
// in, a session of another environment.
type Place struct {
	Portal bool
	Framed bool // a portal in a frame of another page, whose cookie belongs to that page's site
	// Environment is that of the portal. It is zero in the dashboard.
	Environment godwit.EnvironmentID
}

// Kind is the kind of sessions at the place.
func (p Place) Kind() godwit.SessionKind {
	if p.Portal {
		return godwit.PortalSession
	}
	return godwit.DashboardSession
}

// PlaceOf returns the place of the page that sent a request. It refuses a page of the portal that does not say of which environment.
func PlaceOf(r *http.Request) (Place, error) {
	values := r.Header[PortalHeader]
	if len(values) == 0 {
		return Place{}, nil
	}
	p := Place{Portal: true, Framed: values[0] == PortalInFrame}
	text, _, err := named(r, EnvironmentHeader)
	if err == nil {
		p.Environment, err = godwit.ParseEnvironmentID(text)
	}
	if err != nil {
		return Place{}, problem.InvalidRequest.In(EnvironmentHeader, "must be the id of the portal's environment, env_…, beside %s", PortalHeader)
	}
	return p, nil
}

// cookieName returns the name of the session's cookie at a place.
func (b *Browser) cookieName(r *http.Request, p Place) string {
	name := "godwit_session"
	if p.Portal {
		name = "godwit_portal_" + p.Environment.String()
	}
	if p.Framed {
		name += "_frame"
	}
	return b.nameFor(r, name)
}

// nameFor completes the name of a cookie. Browsers send a cookie to all ports of a host: the port is part of the name, so that two servers
// on one machine do not overwrite each other's. With https, the prefix keeps other hosts of the domain from setting the cookie.
func (b *Browser) nameFor(r *http.Request, name string) string {
	port := b.public.Port()
	if !b.fixed {
		_, port, _ = net.SplitHostPort(r.Host) // "" for a host without a port
	}
	if port != "" {
		name += "_" + port
	}
	if b.secure() {
		name = "__Host-" + name
	}
	return name
}

// Token returns the token of the session at the request's place, or "".
func (b *Browser) Token(r *http.Request) (Place, string, error) {
	place, err := PlaceOf(r)
	if err != nil || len(r.Header["Cookie"]) == 0 {
		return place, "", err
	}
	found := r.CookiesNamed(b.cookieName(r, place))
	if len(found) != 1 { // of two, one may have been set by another host of the domain
		return place, "", nil
	}
	return place, found[0].Value, nil
}

// SetCookie returns the value of Set-Cookie that stores a session's token until the session ends.
func (b *Browser) SetCookie(r *http.Request, p Place, token string, life time.Duration) string {
	return b.cookie(r, p, token, max(int(life.Seconds()), 1))
}

// ClearCookie returns the value of Set-Cookie that removes the token.
func (b *Browser) ClearCookie(r *http.Request, p Place) string { return b.cookie(r, p, "", -1) }

func (b *Browser) cookie(r *http.Request, p Place, token string, age int) string {
	c := http.Cookie{
		Name: b.cookieName(r, p), Value: token, Path: "/", MaxAge: age, HttpOnly: true, Secure: b.secure(), SameSite: http.SameSiteStrictMode,
	}
	if p.Framed { // the page around it is of another site
		c.SameSite, c.Secure, c.Partitioned = http.SameSiteNoneMode, true, true
	}
	return c.String()
}

// CheckSite refuses a request that a page of another site makes with the cookies of this one. A change must come from a page of this server, by the
// word of the browser; reads may also come from the address bar.
func (b *Browser) CheckSite(r *http.Request) error {
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "same-origin", safe && (site == "none" || site == ""):
		return nil
	case site != "":
		return problem.CrossSite.With("Sec-Fetch-Site is %q: a request with a cookie must come from a page of this server", Clip(site))
	}
	return b.checkOrigin(r, true)
}

// CheckSignIn refuses a sign-in that a page of another site makes, which would put the browser into a foreign session. Programs that are no browsers may sign in.
func (b *Browser) CheckSignIn(r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") != "" {
		return b.CheckSite(r)
	}
	return b.checkOrigin(r, false)
}

func (b *Browser) checkOrigin(r *http.Request, required bool) error {
	values := r.Header["Origin"]
	if len(values) == 0 && !required {
		return nil
	}
	if len(values) == 1 {
		own := []string{b.public.Scheme + "://" + b.public.Host, "https://" + r.Host}
		if !b.secure() { // a page that came by http may be of another hand than this server
			own = append(own, "http://"+r.Host)
		}
		if slices.Contains(own, values[0]) {
			return nil
		}
	}
	return problem.CrossSite.With("a request with a cookie needs Sec-Fetch-Site: same-origin, or an Origin that is this server's")
}

// Address returns the address of the client: that of the connection or, behind trusted proxies, the last one in X-Forwarded-For that is not theirs.
func (b *Browser) Address(r *http.Request) string {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	client := address.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0 && b.trusts(client); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = hop.Unmap()
	}
	return client.WithZone("").String()
}

func (b *Browser) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(b.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}
