package catalogue

import (
	"strconv"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// maxFields bounds the errors in a response.
const maxFields = 20

// fields converts faults to field errors with the API's names.
func fields(faults []jsonschema.Fault) []godwit.FieldError {
	var list []godwit.FieldError
	for _, f := range faults[:min(len(faults), maxFields)] {
		list = append(list, godwit.FieldError{Field: path(f.Location), Detail: f.Detail})
	}
	return list
}

// path formats a location as in data.lines[2].sku.
func path(location []string) string {
	at := ""
	for _, step := range location {
		if _, err := strconv.ParseUint(step, 10, 32); err == nil && at != "" {
			at += "[" + step + "]"
			continue
		}
		at = Join(at, jsonschema.Clip(step))
	}
	return at
}
