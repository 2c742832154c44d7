package catalogue

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema"
	"github.com/godwit-hq/godwit/internal/jsonschema/compat"
)

// addVersion adds the draft's schema to the entry, if it differs from the one in force.
func addVersion(entry *godwit.EventType, d *Draft, now time.Time) error {
	next := godwit.EventSchema{Version: 1, Schema: d.Schema, CreatedAt: now, Compatibility: string(d.Compatibility)}
	var last *godwit.EventSchema
	if n := len(entry.Schemas); n > 0 {
		last = &entry.Schemas[n-1]
		next.Version = last.Version + 1
		if next.Compatibility == "" {
			next.Compatibility = last.Compatibility
		}
	}
	if d.Schema == nil {
		if last == nil && d.Compatibility != "" {
			return &godwit.FieldError{Field: "compatibility", Detail: "needs a schema: it says how versions of the schema may differ"}
		}
		if last != nil {
			last.Compatibility = next.Compatibility
		}
		return nil
	}
	if _, err := Compile(d.Schema); err != nil {
		return err
	}
	if last != nil {
		changed, err := compare(last, d)
		if err != nil {
			return err
		}
		if !changed {
			last.Compatibility = next.Compatibility
			return nil
		}
	}
	entry.Schemas = append(entry.Schemas, next)
	dropOldest(entry)
	return nil
}

// compare reports whether the draft's schema differs from the last version. It returns an error that names the places where it is not
// compatible. What the last version declared counts; the draft's own declaration is for the version after it.
func compare(last *godwit.EventSchema, d *Draft) (changed bool, err error) {
	before, err := jsonschema.Decode(last.Schema)
	if err != nil {
		return false, fmt.Errorf("read version %d of the schema: %w", last.Version, err)
	}
	after, err := jsonschema.Decode(d.Schema)
	if err != nil {
		return false, &godwit.FieldError{Field: "schema", Detail: err.Error()}
	}
	if reflect.DeepEqual(before, after) {
		return false, nil
	}
	declared := compat.Direction(last.Compatibility)
	if declared == "" {
		declared = d.Compatibility
	}
	if d.Force {
		return true, nil
	}
	var faults []error
	for _, f := range compat.Compare(before, after, declared) {
		faults = append(faults, &godwit.FieldError{Field: "schema" + strings.TrimSuffix(f.Place, "/"), Detail: fmt.Sprintf(
			"is not %s compatible with version %d: %s. Change it, or add force=true to the request to store it all the same", f.Direction, last.Version, f.Detail)})
	}
	return true, errors.Join(faults...)
}

// dropOldest removes the oldest versions until the others are within bounds.
func dropOldest(entry *godwit.EventType) {
	size := 0
	for i := len(entry.Schemas) - 1; i >= 0; i-- {
		if size += len(entry.Schemas[i].Schema); size > maxHistory {
			entry.Schemas = entry.Schemas[i+1:]
			return
		}
	}
}
