package problem

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
)

// RequestIDHeader is the response header with the request id.
const RequestIDHeader = "Request-Id"

// A Writer answers with problem details.
type Writer struct {
	// Base is the public URL of this server, without a slash at the end. It is put before documentation paths. If empty,
	// they are relative references, which are valid too.
	Base string
	Log  *slog.Logger
	// Outage bounds how many requests are logged that are refused as unavailable. Defaults to all of them.
	Outage *Outage
}

// DocumentationURL returns the URL of a documentation page.
func (w *Writer) DocumentationURL(page string) string { return strings.TrimSuffix(w.Base, "/") + page }

// Complete turns an error into the problem that is sent, with its type URL, its headers and the request id. Details that a
// client must not see are logged here and nowhere else.
func (w *Writer) Complete(r *http.Request, requestID string, err error) *Problem {
	found := From(err)
	p := *found // the error may be shared by several requests
	p.RequestID = requestID
	p.header = found.header.Clone()
	if p.header == nil {
		p.header = http.Header{}
	}
	if k := p.kind; k != nil {
		page := w.DocumentationURL(k.Page)
		p.Type = page + "#" + k.Code
		if k.Page == PageIdempotency {
			p.header.Set("Link", `<`+page+`>; rel="describedby"; type="text/html"`)
		}
		if k.retryAfter != "" && p.header.Get("Retry-After") == "" {
			p.header.Set("Retry-After", k.retryAfter)
		}
	}
	if p.Status == http.StatusUnauthorized && p.header.Get("WWW-Authenticate") == "" {
		p.header.Set("WWW-Authenticate", `Bearer realm="godwit"`)
	}
	if p.Status >= http.StatusInternalServerError {
		w.log(r, &p, err)
	}
	return &p
}

func (w *Writer) log(r *http.Request, p *Problem, err error) {
	level := slog.LevelError
	switch p.kind {
	case Unavailable:
		level = w.Outage.refused(err)
	case DownstreamFailed, DownstreamTimeout, NoDownstream:
		level = slog.LevelInfo // caused by an endpoint; the attempts record it
	}
	w.Log.LogAttrs(r.Context(), level, "request failed",
		slog.String("code", p.Code), slog.String("method", r.Method), slog.String("route", r.Pattern),
		slog.String("request_id", p.RequestID), slog.Any("error", err))
}

// Write answers the request with err.
func (w *Writer) Write(rw http.ResponseWriter, r *http.Request, err error) {
	p := w.Complete(r, rw.Header().Get(RequestIDHeader), err)
	h := rw.Header()
	for name, values := range p.header {
		h[name] = values
	}
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	rw.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		rw.Write(p.JSON())
	}
}

// JSON renders the body.
func (p *Problem) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		// The values are strings, integers and slices of them, so encoding cannot fail.
		return []byte(`{"code":"internal","status":500,"title":"Internal error","type":"about:blank"}`)
	}
	return b.Bytes()
}
