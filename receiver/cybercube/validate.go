package cybercube

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/receiver"
)

// eventMembers are the members of an event, the first byte that a value of their type may have, and whether they are
// required: the four of the minimal form are (CCW-EVT-32).
var eventMembers = []struct {
	name, kind, first string
	required          bool
}{
	{"id", "a string", `"`, true}, {"type", "a string", `"`, true}, {"created_at", "a string", `"`, true}, {"data", "an object", "{", true},
	{"api_version", "a string", `"`, false}, {"account_id", "a string", `"`, false}, {"livemode", "a boolean", "tf", false},
}

// ValidateEvent returns what is wrong with an event; it fits receiver.Options.Validate (CCW-RCV-15). The application validates
// the event's own data.
func ValidateEvent(d *receiver.Delivery) error {
	var event map[string]json.RawMessage
	if err := d.JSON(&event); err != nil || event == nil {
		return errors.New("the event is not a JSON object")
	}
	for _, m := range eventMembers {
		value, ok := event[m.name]
		if !ok && !m.required {
			continue
		}
		fits := false
		for i := range len(m.first) {
			fits = fits || len(value) > 0 && value[0] == m.first[i]
		}
		if !fits {
			return fmt.Errorf("%s is not %s", m.name, m.kind)
		}
	}
	return nil
}
