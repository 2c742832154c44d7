package oidc

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// pages are the pages of the steps. They have no script, and their one style is allowed by its digest.
var pages = template.Must(template.New("page").Parse(pageText))

var contentPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// content is what a page shows.
type content struct {
	Style   template.CSS
	Title   string
	Reason  string
	Detail  string
	Start   string // URL that begins a sign-in; "" if that would not help
	User    string
	Choose  string
	Offered []offered
}

func (h *handlers) showRefusal(w http.ResponseWriter, r *http.Request, status int, reason, detail string) {
	c := content{Title: "You are not signed in", Reason: reason, Detail: detail}
	if h.Provider != nil {
		c.Start = StartPath
		if to := r.URL.Query().Get("return"); r.URL.Path == StartPath && status == http.StatusServiceUnavailable && to != "" {
			c.Start += "?return=" + url.QueryEscape(to)
		}
	}
	h.show(w, r, status, c)
}

func (h *handlers) showChoice(w http.ResponseWriter, r *http.Request, user string, list []offered) {
	h.show(w, r, http.StatusOK, content{Title: "Choose where to work", User: user, Choose: ChoicePath, Offered: list, Start: StartPath})
}

func (h *handlers) show(w http.ResponseWriter, r *http.Request, status int, c content) {
	c.Style = template.CSS(style)
	var b bytes.Buffer
	if err := pages.Execute(&b, c); err != nil {
		h.Problems.Write(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin") // without a referrer, a form's Origin would be null, which is refused
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // the client may have gone
	}
}
