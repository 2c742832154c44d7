package builtincommand

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/command"
)

// A tenant cannot delete itself, however it spells its id.
func TestTenantDoesNotDeleteItself(t *testing.T) {
	const own = "ten_0190a1b2-c3d4-7000-8000-00000000000a"
	for _, target := range []string{own, "ten_" + strings.ToUpper(own[4:])} {
		_, err := deleteTenant(Config{}).handle(context.Background(), &command.Call{Tenant: own, Intent: command.Intent{Target: target}})
		var r *command.Rejection
		if !errors.As(err, &r) || r.Reason != "own_tenant" {
			t.Errorf("%s: %v", target, err)
		}
	}
}
