package problem

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
)

// RequestIDHeader is the response header that names the request.
const RequestIDHeader = "Request-Id"

// A Writer answers with problem details.
type Writer struct {
	// Base is the public address of this server, without a slash at the end, put before documentation paths. Empty gives
	// relative references, which are as valid.
	Base string
	Log  *slog.Logger
}

// DocumentationURL is where a page lives.
func (w *Writer) DocumentationURL(page string) string { return strings.TrimSuffix(w.Base, "/") + page }

// Complete turns an error into the problem that is sent: with its type URL, its headers and the id of the request. Details
// of what is not a client's matter are logged here and nowhere else.
func (w *Writer) Complete(r *http.Request, requestID string, err error) *Problem {
	found := From(err)
	p := *found // the error may be shared by requests
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
		level = slog.LevelWarn
	case DownstreamFailed, DownstreamTimeout, NoDownstream:
		level = slog.LevelInfo // an endpoint's doing, of which the attempts tell
	}
	w.Log.LogAttrs(r.Context(), level, "request failed",
		slog.String("code", p.Code), slog.String("method", r.Method), slog.String("route", r.Pattern),
		slog.String("request_id", p.RequestID), slog.Any("error", err))
}

// Write answers the request with what the error is to a client.
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
		// Strings, integers and slices of them: there is nothing here that cannot be encoded.
		return []byte(`{"code":"internal","status":500,"title":"Internal error","type":"about:blank"}`)
	}
	return b.Bytes()
}
