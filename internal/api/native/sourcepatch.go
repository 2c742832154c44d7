package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
)

// SourcePatch is a merge patch of a source. Its members give the types for the OpenAPI document. The patch itself is applied
// from the raw document.
type SourcePatch struct {
	Name        string          `json:"name,omitempty" maxLength:"64"`
	Description *string         `json:"description,omitempty" nullable:"true"`
	Scheme      string          `json:"scheme,omitempty" doc:"Cannot change"`
	Settings    map[string]any  `json:"settings,omitempty" nullable:"true"`
	Adopt       *bool           `json:"adopt,omitempty" nullable:"true"`
	Mode        *string         `json:"mode,omitempty" nullable:"true" enum:"store-and-forward,pass-through"`
	EventType   map[string]any  `json:"event_type,omitempty" nullable:"true"`
	KeepHeaders nullableStrings `json:"keep_headers,omitempty"`

	document []byte
}

// UnmarshalJSON keeps the raw document; huma has checked it against the members above.
func (p *SourcePatch) UnmarshalJSON(b []byte) error {
	p.document = bytes.Clone(b)
	return nil
}

// patchSource applies a merge patch to the source's specification.
func patchSource(spec *source.Spec, patch []byte) error {
	current, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode source: %w", err)
	}
	document, err := decodeObject(current)
	if err != nil {
		return fmt.Errorf("decode source: %w", err)
	}
	changes, err := decodeObject(patch)
	if err != nil {
		return problem.MalformedJSON.In("body", "must be a JSON object")
	}
	merged, err := json.Marshal(mergePatch(document, changes))
	if err != nil {
		return fmt.Errorf("encode source: %w", err)
	}
	var next source.Spec
	dec := json.NewDecoder(bytes.NewReader(merged))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&next); err != nil {
		var typeErr *json.UnmarshalTypeError
		if errors.As(err, &typeErr) {
			return problem.InvalidRequest.In(typeErr.Field, "has the wrong type")
		}
		return problem.InvalidRequest.In("body", "does not describe a source")
	}
	if next.Mode == "" {
		next.Mode = godwit.StoreAndForward
	}
	*spec = next
	return nil
}
