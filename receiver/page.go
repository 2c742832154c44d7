package receiver

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
)

// DocsHandler serves the page that publishes the receiver's policy (IKH-RSP-3), without credentials. The receiver also serves
// it on [Options.DocsPath].
func (r *Receiver) DocsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
			return
		}
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", "default-src 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(r.docs())
	})
}

var docsPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Webhook receiver: idempotency policy</title></head>
<body>
<h1>Webhook receiver: idempotency policy</h1>
<dl>
{{range .Rules}}<dt>{{.Name}}</dt><dd>{{.Text}}</dd>
{{end}}</dl>
<h2>Errors</h2>
<table>
<tr><th>Status</th><th>Error</th><th>When, and what to do</th></tr>
{{range .Errors}}<tr id="{{.Code}}"><td>{{.Status}}</td><td>{{.Title}}</td><td>{{.Text}}</td></tr>
{{end}}</table>
</body>
</html>
`))

type docsRule struct{ Name, Text string }

type docsError struct {
	Status int
	Code   ProblemCode
	Title  string
	Text   string
}

// docs is made from the running configuration, so that it is always right.
func (r *Receiver) docs() []byte {
	var page bytes.Buffer
	err := docsPage.Execute(&page, struct {
		Rules  []docsRule
		Errors []docsError
	}{r.docsRules(), r.docsErrors()})
	if err != nil {
		r.failed(err, "make documentation")
	}
	return page.Bytes()
}

func (r *Receiver) docsRules() []docsRule {
	rules := []docsRule{
		{"Scheme", r.profile.Name},
		{"Methods", strings.Join(r.profile.Methods, ", ")},
		{"Size", fmt.Sprintf("at most %d bytes", r.o.MaxBody)},
		{"Authentication", "required on every request, over the raw bytes"},
		{"Freshness", "not checked"},
		{"Key", "required; taken from " + r.profile.KeySource},
	}
	if r.tolerance >= 0 {
		rules[4].Text = fmt.Sprintf("the signed time may differ from ours by at most %d seconds", r.tolerance/time.Second)
	}
	if r.profile.KeySyntax {
		text := fmt.Sprintf("one structured-field String (RFC 9651) in double quotes, %d to %d printable ASCII characters", r.o.Key.Min, r.o.Key.Max)
		if r.o.Key.Lenient {
			text += "; a bare value is taken as well"
		}
		rules = append(rules, docsRule{"Key format", text})
	}
	if r.o.Dedup.Off {
		return append(rules, docsRule{"Deduplication", "off: replays are refused by their signed time alone, and handlers bear duplicates"})
	}
	fingerprint := "on: a key may not be used again with another payload"
	if r.o.Dedup.NoFingerprint {
		fingerprint = "off: a repeat is told by its key alone"
	}
	return append(rules,
		docsRule{"Key scope", "unique per authenticated producer and endpoint URI"},
		docsRule{"Expiry", fmt.Sprintf("a key is remembered for %g hours (%d seconds) after the first request with it has completed; after that it is a new one",
			r.window.Hours(), r.window/time.Second)},
		docsRule{"Fingerprint", fingerprint},
		docsRule{"Repeats", "a repeat of a completed request gets its answer again, with the header Idempotency-Replayed: true"},
	)
}

func (r *Receiver) docsErrors() []docsError {
	const correct, wait = "Correct the request before sending it again.", "Come again later, unchanged."
	inProgress := http.StatusServiceUnavailable
	if r.o.API {
		inProgress = http.StatusConflict
	}
	list := []docsError{
		{400, CodeKeyMissing, "", "The key is missing. " + correct},
		{400, CodeKeyMalformed, "", "The key does not have the published format. " + correct},
		{400, CodeKeyLength, "", "The key is too short or too long. " + correct},
		{400, CodePayloadMalformed, "", "The payload cannot be read. " + correct},
		{400, CodePayloadInvalid, "", "The payload is not what it should be. " + correct},
		{401, CodeUnauthenticated, "", "The signature or credential is missing, wrong, or not fresh. Sign anew before sending again."},
		{405, CodeMethod, "", "Another method is needed; see Allow."},
		{413, CodeTooLarge, "", "The payload is too large."},
		{425, CodeTooEarly, "", "Sent as early data: send it again after the handshake."},
		{500, CodeInternal, "", "The receiver failed. " + wait},
		{503, CodeRetryAfter, "", "The event cannot be taken now. " + wait},
		{503, CodeUnavailable, "", "The receiver cannot remember keys at the moment. " + wait},
	}
	if !r.o.Dedup.Off {
		list = append(list,
			docsError{inProgress, CodeInProgress, "", "A request with this key is being processed. " + wait},
			docsError{422, CodeKeyReused, "", "The key was used with another payload. " + correct})
	}
	for i := range list {
		list[i].Title = titles[list[i].Code]
	}
	return list
}
