package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/godwit-hq/godwit/client"
)

// Hint says what to run next after an error; "" if there is no advice.
func (s *Session) Hint(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) {
		return s.hintRefused(refused)
	}
	var failed *url.Error
	var op *net.OpError
	if errors.As(err, &failed) && errors.As(err, &op) && op.Op == "dial" {
		server := failed.URL
		if u, err := url.Parse(failed.URL); err == nil {
			server = u.Scheme + "://" + u.Host
		}
		return fmt.Sprintf("No server answers at %s. Start one with \"godwit serve\" or \"godwit dev\", or choose another with --url or \"godwit context use\".", server)
	}
	return ""
}

func (s *Session) hintRefused(e *client.Error) string {
	path := s.path()
	command := "godwit " + strings.Join(path, " ")
	switch e.Status {
	case http.StatusUnauthorized:
		return "The server does not know this API key, or it is revoked or expired. Run \"godwit login\" with another one."
	case http.StatusForbidden:
		return "\"godwit whoami\" shows the tenant and the scopes of the key; --context, GODWIT_KEY or --key chooses another."
	case http.StatusNotFound:
		if len(path) == 2 && resources[path[0]] != nil {
			return fmt.Sprintf("\"godwit %s list\" shows what there is.", path[0])
		}
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		if len(path) > 0 {
			return fmt.Sprintf("\"%s --help\" describes the flags.", command)
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if e.RetryAfter != "" {
			return fmt.Sprintf("Try again in %s s.", Printable(e.RetryAfter))
		}
	}
	return ""
}
