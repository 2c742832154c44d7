package ui

import (
	"strings"

	"github.com/godwit-hq/godwit/internal/problem"
)

// policy returns the content security policy of a page: files of this server and nothing else, no script or style inside of documents, and no
// text that becomes markup but by the one policy that Svelte makes its templates with. Only the ancestors may show the page in a frame.
func policy(ancestors []string) string {
	frame := "'none'"
	if len(ancestors) > 0 {
		frame = strings.Join(ancestors, " ")
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
		"form-action 'none'; base-uri 'none'; frame-ancestors " + frame + "; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"
}

var errNoAsset = problem.NotFound.With("there is no such file; the page is of another version of the server, load it again")
