package wellknown

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// AddressesPath is where receivers find the addresses that deliveries come from (CCW-HTTP-16).
const AddressesPath = "/.well-known/webhook-ips"

type addressList struct {
	Production []string `json:"production"`
	UpdatedAt  string   `json:"updated_at"`
}

// addresses holds both forms of the list, rendered once: it changes only with the configuration.
type addresses struct{ document, text []byte }

func newAddresses(ranges []netip.Prefix, since time.Time) (*addresses, error) {
	list := addressList{Production: []string{}, UpdatedAt: since.UTC().Format(time.RFC3339)}
	for _, r := range ranges {
		list.Production = append(list.Production, r.String())
	}
	document, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	text := strings.Join(append([]string{"# Production"}, list.Production...), "\n") + "\n"
	return &addresses{append(document, '\n'), []byte(text)}, nil
}

func (a *addresses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Vary", "Accept")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("X-Content-Type-Options", "nosniff")
	if prefersText(r.Header.Values("Accept")) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.Write(a.text)
		return
	}
	h.Set("Content-Type", "application/json")
	w.Write(a.document)
}

// prefersText reports whether the client prefers plain text to JSON. Without a preference it gets JSON.
func prefersText(accept []string) bool {
	var text, document float64
	var named bool // text/plain or text/* is named, not only */*
	for entry := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, parameters, err := mime.ParseMediaType(entry)
		if err != nil {
			continue
		}
		q := 1.0
		if given, err := strconv.ParseFloat(parameters["q"], 64); err == nil {
			q = given
		}
		switch media {
		case "text/plain", "text/*":
			text, named = max(text, q), true
		case "application/json", "application/*":
			document = max(document, q)
		}
	}
	return named && text > document
}
