package ojs

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/problem"
)

const (
	plainJSON   = "application/json"
	openJobSpec = "application/openjobspec+json"
	specVersion = "1.0"
)

// Binding adds what the specification's HTTP binding requires to every response: OJS-Version, X-Request-Id and the media
// type application/openjobspec+json. A client that asks for application/json gets that type. A request for another version of
// the specification is refused, except for the manifest, which shows the version. Put Binding around all handlers under /ojs/.
func Binding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpapi.NameRequest(w, r)
		h := w.Header()
		h.Set("OJS-Version", specVersion)
		h.Set("X-Request-Id", h.Get(problem.RequestIDHeader))
		h.Add("Vary", "Accept")
		bound := &boundWriter{ResponseWriter: w, media: negotiate(r.Header.Values("Accept"))}
		if wanted, ok := unsupported(r.Header.Values("OJS-Version")); ok && !strings.HasSuffix(r.URL.Path, "/manifest") {
			writeJSON(bound, http.StatusUnprocessableEntity, errorBody{errorObject{
				Code: "unsupported", RequestID: h.Get("X-Request-Id"),
				Message: fmt.Sprintf("OJS-Version: %q is not supported; this server implements %s", httpapi.Clip(wanted), specVersion),
				Details: errorDetails{Fields: []fieldDetail{{"OJS-Version", "must be " + specVersion + ", or absent"}}},
			}})
			return
		}
		next.ServeHTTP(bound, r)
	})
}

// unsupported returns the first version that a client asks for and this server does not implement. Clients write the version in
// several ways: the binding as 1.0, other parts of the specification with its release candidate.
func unsupported(versions []string) (wanted string, found bool) {
	for _, v := range versions {
		switch strings.TrimSpace(v) {
		case "1", specVersion, "1.0.0", extensionVersion:
		default:
			return v, true
		}
	}
	return "", false
}

// boundWriter sets the negotiated media type of JSON responses, whichever handler writes them. A stored response names the
// media type that the first client asked for, so a repeat may need another.
type boundWriter struct {
	http.ResponseWriter
	media string
	begun bool
}

// Unwrap supports http.ResponseController.
func (w *boundWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sets the media type.
func (w *boundWriter) WriteHeader(status int) {
	if !w.begun {
		w.begun = status >= 200
		if kind := w.Header().Get("Content-Type"); kind == plainJSON || kind == openJobSpec {
			w.Header().Set("Content-Type", w.media)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends the header first.
func (w *boundWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// negotiate chooses between the two media types. Clients that name the binding's own type, accept any type, or send no
// Accept field get the binding's own. Clients that name only application/json, or prefer it, get application/json.
func negotiate(accept []string) string {
	plain, own := -1.0, -1.0 // not named
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				q = 0
			}
		}
		switch kind {
		case plainJSON:
			plain = max(plain, q)
		case openJobSpec:
			own = max(own, q)
		}
	}
	if plain > 0 && plain > own || own == 0 && plain != 0 {
		return plainJSON
	}
	return openJobSpec
}
