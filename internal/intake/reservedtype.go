package intake

import (
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
)

// CheckType rejects a malformed or reserved type. Admit calls it too; a door calls it to reject a request before it reads
// the body.
func CheckType(eventType string) error {
	if why := godwit.ValidEventType(eventType); why != "" {
		return problem.Invalid.In("type", "%s", why)
	}
	// Types are case-sensitive here, but not for every receiver: some compare them with a database's text comparison.
	if profile.Meta(strings.ToLower(eventType)) {
		return problem.Invalid.In("type", "must not begin with webhook. or godwit., in any case: these are the server's own events; choose another type")
	}
	return nil
}
