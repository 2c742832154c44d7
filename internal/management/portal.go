package management

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Bounds of what an environment says about its portal.
const (
	maxOrigins  = 50
	maxFont     = 200
	maxRadius   = 16
	maxImage    = 32 << 10 // decoded
	maxWord     = 80
	maxHelpURL  = 500
	svgImage    = "data:image/svg+xml;base64,"
	pngImage    = "data:image/png;base64,"
	pngFirst    = "\x89PNG\r\n\x1a\n"
	originsName = "allowed_origins"
)

func checkPortal(p *godwit.Portal) error {
	errs := []error{checkOrigins(p.AllowedOrigins), checkPalette("theme.light", &p.Theme.Light), checkPalette("theme.dark", &p.Theme.Dark), checkFont(p.Theme.Font)}
	if r := p.Theme.Radius; r != nil && (*r < 0 || *r > maxRadius) {
		errs = append(errs, fieldError("theme.radius", "must be between 0 and %d", maxRadius))
	}
	errs = append(errs, checkImage("theme.logo", p.Theme.Logo), checkImage("theme.favicon", p.Theme.Favicon), checkWords(&p.Theme.Words))
	return errors.Join(errs...)
}

func checkOrigins(origins []string) error {
	var errs []error
	if len(origins) > maxOrigins {
		errs = append(errs, fieldError(originsName, "must have at most %d origins", maxOrigins))
	}
	for i, origin := range origins {
		field := fmt.Sprintf("%s[%d]", originsName, i)
		if err := checkOrigin(field, origin); err != nil {
			errs = append(errs, err)
		} else if slices.Contains(origins[:i], origin) {
			errs = append(errs, fieldError(field, "is given twice"))
		}
	}
	return errors.Join(errs...)
}

// checkOrigin accepts an origin as browsers write it. It stands in a Content-Security-Policy, so nothing else may be in it.
func checkOrigin(field, origin string) error {
	refused := fieldError(field, "must be an origin as browsers write it, as in https://app.example.com or https://app.example.com:8443: lower case, without a path")
	scheme, rest, found := strings.Cut(origin, "://")
	if !found || len(origin) > 300 || strings.ContainsAny(rest, "/?#@\\;, '\"*") {
		return refused
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host != rest || u.Hostname() == "" || strings.HasSuffix(rest, ":") {
		return refused
	}
	host, port := u.Hostname(), u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port) {
		return refused
	}
	address, err := netip.ParseAddr(host)
	if isAddress := err == nil; isAddress && address.String() != host || !isAddress && !hostForm.MatchString(host) {
		return refused
	}
	switch scheme {
	case "https":
		if port == "443" {
			return refused
		}
	case "http":
		if port == "80" {
			return refused
		}
		if host != "localhost" && !net.ParseIP(host).IsLoopback() {
			return fieldError(field, "must begin with https://; http is for localhost alone")
		}
	default:
		return refused
	}
	return nil
}

// hostForm is the form of host names in lower case.
var hostForm = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

var colourForm = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)

func checkPalette(field string, p *godwit.Palette) error {
	var errs []error
	for _, c := range []struct{ name, value string }{
		{"accent", p.Accent}, {"background", p.Background}, {"surface", p.Surface}, {"text", p.Text}, {"muted", p.Muted}, {"border", p.Border},
	} {
		if c.value != "" && !colourForm.MatchString(c.value) {
			errs = append(errs, fieldError(field+"."+c.name, "must be a colour such as #0a66c2"))
		}
	}
	return errors.Join(errs...)
}

// fontForm is a list of family names, bare or quoted. It becomes the value of a CSS property, so it can hold no other syntax.
var fontForm = regexp.MustCompile(`^(` + family + `)(, ?(` + family + `))*$`)

const family = `[A-Za-z_-][A-Za-z0-9_-]*( [A-Za-z0-9_-]+)*|"[A-Za-z0-9 ._-]+"|'[A-Za-z0-9 ._-]+'`

func checkFont(font string) error {
	if font != "" && (len(font) > maxFont || !fontForm.MatchString(font)) {
		return fieldError("theme.font", "must be a list of font families of at most %d characters, such as Inter, \"Segoe UI\", sans-serif", maxFont)
	}
	return nil
}

// checkImage accepts an image in a data URL.
func checkImage(field, image string) error {
	if image == "" {
		return nil
	}
	text, isSVG := strings.CutPrefix(image, svgImage)
	if !isSVG {
		var isPNG bool
		if text, isPNG = strings.CutPrefix(image, pngImage); !isPNG {
			return fieldError(field, "must begin with %s or %s", pngImage, svgImage)
		}
	}
	content, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil:
		return fieldError(field, "must be base64 after the comma")
	case len(content) > maxImage:
		return fieldError(field, "has %d bytes, and may have %d", len(content), maxImage)
	case !isSVG && !bytes.HasPrefix(content, []byte(pngFirst)):
		return fieldError(field, "is not a PNG image")
	case isSVG:
		if err := checkSVG(content); err != nil {
			return fieldError(field, "is not an SVG image that can be shown: %s", err)
		}
	}
	return nil
}

func checkWords(w *godwit.ThemeWords) error {
	errs := []error{
		checkText("theme.words.title", w.Title, maxWord), checkText("theme.words.endpoints", w.Endpoints, maxWord),
		checkText("theme.words.event_types", w.EventTypes, maxWord), checkText("theme.words.deliveries", w.Deliveries, maxWord),
	}
	if w.HelpURL != "" {
		u, err := url.Parse(w.HelpURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(w.HelpURL) > maxHelpURL || strings.ContainsAny(w.HelpURL, "\"<>\\ ") {
			errs = append(errs, fieldError("theme.words.help_url", "must be an https URL of at most %d characters", maxHelpURL))
		}
	}
	return errors.Join(errs...)
}

// A portalCache keeps environments in memory, for pages that ask with every request.
type portalCache struct {
	mu      sync.RWMutex
	entries map[godwit.EnvironmentID]*godwit.Environment
	drops   uint64 // counts invalidations: an environment loaded before one is not cached after it
}

func (c *portalCache) get(id godwit.EnvironmentID, load func() (*godwit.Environment, error)) (*godwit.Environment, error) {
	c.mu.RLock()
	e, drops := c.entries[id], c.drops
	c.mu.RUnlock()
	if e != nil {
		return e, nil
	}
	e, err := load()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops == drops {
		c.entries[id] = e
	}
	return e, nil
}

func (c *portalCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	clear(c.entries)
}

// Portal returns an environment, with what it says about its portal, from memory where it can. The caller must not change it.
func (es *Environments) Portal(ctx context.Context, id godwit.EnvironmentID) (*godwit.Environment, error) {
	if err := es.fresh(ctx); err != nil {
		return nil, fmt.Errorf("look for changed environments: %w", err)
	}
	return es.portals.get(id, func() (*godwit.Environment, error) { return es.store.Environment(ctx, id) })
}

// FrameAncestors returns the origins of pages that may frame the portal of the environment with an id; none for an environment that there is
// not. A change is honoured at once on this node, and within half a second on others. With an error nothing may frame it.
func (es *Environments) FrameAncestors(ctx context.Context, id string) ([]string, error) {
	parsed, err := godwit.ParseEnvironmentID(id)
	if err != nil {
		return nil, nil //nolint:nilerr // text that is no id names no environment
	}
	e, err := es.Portal(ctx, parsed)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find environment: %w", err)
	}
	return e.Portal.AllowedOrigins, nil
}
