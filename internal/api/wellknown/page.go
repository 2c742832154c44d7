package wellknown

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
)

//go:embed pages
var files embed.FS

const (
	idempotencyTemplate = "idempotency.html"
	problemsTemplate    = "problems.html"
	serviceTemplate     = "service.html"
)

// styleSheet is inlined, and the policy allows it by its hash, so that a page needs no other resource.
var styleSheet, stylePolicy = func() (template.CSS, string) {
	css, err := files.ReadFile("pages/style.css")
	if err != nil {
		panic("well-known pages: style sheet is not embedded") // at program start; it does not depend on input
	}
	sum := sha256.Sum256(css)
	return template.CSS(css), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

func render(name string, data any) ([]byte, error) {
	t, err := template.New(name).Funcs(template.FuncMap{
		"style": func() template.CSS { return styleSheet },
	}).ParseFS(files, "pages/"+name)
	if err != nil {
		return nil, fmt.Errorf("parse page %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("render page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

func page(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", stylePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}
}

// specification holds the contents of the idempotency page.
type specification struct {
	MinLength, MaxLength int
	WindowHours          string
	TimeScale            string // empty if time is not scaled
	LeaseSeconds         string
	StoredKiB            string
	Fingerprint          string
	Problems             []*problem.Kind
}

func newSpecification(c idempotency.Config) specification {
	s := specification{
		MinLength: c.Format.MinLength, MaxLength: c.Format.MaxLength,
		WindowHours:  number(c.Window.Hours()),
		LeaseSeconds: number(c.Lease.Round(time.Second).Seconds()),
		StoredKiB:    number(float64(c.MaxStoredBody) / 1024),
		Fingerprint:  strings.TrimSuffix(c.Fingerprint.Doc, "."),
	}
	if c.TimeScale != 0 && c.TimeScale != 1 {
		s.TimeScale = number(float64(c.TimeScale))
	}
	for _, k := range problem.Kinds() {
		if k.Page == problem.PageIdempotency {
			s.Problems = append(s.Problems, k)
		}
	}
	return s
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
