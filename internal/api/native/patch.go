package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// EndpointPatch is a merge patch of an endpoint. Its members give the types for the OpenAPI document. The patch itself is
// applied from the raw document, because only that distinguishes null from absent.
type EndpointPatch struct {
	UID         *string                    `json:"uid,omitempty" nullable:"true"`
	URL         string                     `json:"url,omitempty"`
	Method      *string                    `json:"method,omitempty" nullable:"true" enum:"POST,PUT"`
	Profile     string                     `json:"profile,omitempty" doc:"Cannot change"`
	Description *string                    `json:"description,omitempty" nullable:"true"`
	Patterns    nullableStrings            `json:"patterns,omitempty"`
	Filter      map[string]nullableStrings `json:"filter,omitempty" nullable:"true"`
	Content     godwit.ContentFilter       `json:"content_filter,omitempty" nullable:"true" doc:"Replaced as a whole; null removes it"`
	Headers     map[string]*string         `json:"headers,omitempty" nullable:"true"`
	Auth        *AuthPatch                 `json:"auth,omitempty" doc:"Replaced as a whole; null removes it"`
	Policy      *PolicyPatch               `json:"policy,omitempty" doc:"null removes every deviation from the profile"`
	Signing     *string                    `json:"signing,omitempty" nullable:"true" enum:"own,environment" doc:"own needs a live secret of the endpoint's own: rotate first"`
	Metadata    godwit.Metadata            `json:"metadata,omitempty" nullable:"true" doc:"Any JSON values; null removes a member, or all of them"`

	document []byte
}

// UnmarshalJSON keeps the raw document; huma has checked it against the members above.
func (p *EndpointPatch) UnmarshalJSON(b []byte) error {
	p.document = bytes.Clone(b)
	return nil
}

// nullableStrings is a list that a patch may clear with null.
type nullableStrings []string

// Schema tells huma that null is allowed.
func (nullableStrings) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Nullable: true, Items: &huma.Schema{Type: huma.TypeString}}
}

// PolicyPatch is the policy in a patch: any of its members, with null for the profile's default.
type PolicyPatch struct {
	_                  struct{}           `nullable:"true"`
	BaseSeconds        *float64           `json:"base_seconds,omitempty" nullable:"true"`
	CapSeconds         *float64           `json:"cap_seconds,omitempty" nullable:"true"`
	MaxRetries         *int               `json:"max_retries,omitempty" nullable:"true"`
	MaxElapsedSeconds  *float64           `json:"max_elapsed_seconds,omitempty" nullable:"true"`
	TimeoutSeconds     *float64           `json:"timeout_seconds,omitempty" nullable:"true"`
	Concurrency        *int               `json:"concurrency,omitempty" nullable:"true"`
	RatePerSecond      *float64           `json:"rate_per_second,omitempty" nullable:"true"`
	Burst              *int               `json:"burst,omitempty" nullable:"true"`
	HoldScope          *string            `json:"hold_scope,omitempty" nullable:"true"`
	DisableAfter       *int               `json:"disable_after,omitempty" nullable:"true"`
	CircuitAfter       *int               `json:"circuit_after,omitempty" nullable:"true"`
	PerSecond          *int               `json:"per_second,omitempty" nullable:"true"`
	PerMinute          *int               `json:"per_minute,omitempty" nullable:"true"`
	AccountPerMinute   *int               `json:"account_per_minute,omitempty" nullable:"true"`
	DisableAfterFails  *int               `json:"disable_after_failures,omitempty" nullable:"true"`
	ReenableAfterSecs  *float64           `json:"reenable_after_seconds,omitempty" nullable:"true"`
	SkipWhilePaused    *bool              `json:"skip_while_paused,omitempty" nullable:"true"`
	Announce           *bool              `json:"announce,omitempty" nullable:"true"`
	Alert              *bool              `json:"alert,omitempty" nullable:"true"`
	Rotation           *string            `json:"rotation,omitempty" nullable:"true"`
	DedupWindowSeconds *float64           `json:"dedup_window_seconds,omitempty" nullable:"true"`
	KeyMinLength       *int               `json:"key_min_length,omitempty" nullable:"true"`
	KeyMaxLength       *int               `json:"key_max_length,omitempty" nullable:"true"`
	KeyAlphabet        *string            `json:"key_alphabet,omitempty" nullable:"true"`
	Statuses           map[string]*string `json:"statuses,omitempty" nullable:"true"`
	MultiStatus        *bool              `json:"multi_status,omitempty" nullable:"true"`
	RefreshOn401       *bool              `json:"refresh_on_401,omitempty" nullable:"true"`
	Agreement          *AgreementPatch    `json:"agreement,omitempty"`
}

// AuthPatch is a new credential, or null for none.
type AuthPatch struct {
	_ struct{} `nullable:"true"`
	Auth
}

// AgreementPatch is the agreement in a patch.
type AgreementPatch struct {
	_             struct{} `nullable:"true"`
	Document      *string  `json:"document,omitempty" nullable:"true"`
	VisibleToBoth *bool    `json:"visible_to_both,omitempty" nullable:"true"`
}

type patchInput struct {
	EndpointPath
	VersionParams
	Body EndpointPatch
}

// patchSpec applies a merge patch to the endpoint's specification.
func patchSpec(spec *management.EndpointSpec, patch []byte) error {
	current, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode endpoint: %w", err)
	}
	document, err := decodeObject(current)
	if err != nil {
		return fmt.Errorf("decode endpoint: %w", err)
	}
	changes, err := decodeObject(patch)
	if err != nil {
		return problem.MalformedJSON.In("body", "must be a JSON object")
	}
	if _, given := changes["auth"]; given {
		delete(document, "auth") // members of the old credential have no meaning for another kind
	}
	content, replaced := changes["content_filter"]
	if replaced { // as a whole: conditions that are left of another filter would surprise, and a null in it is a condition
		delete(document, "content_filter")
		delete(changes, "content_filter")
	}
	document = mergePatch(document, changes)
	if replaced && content != nil {
		document["content_filter"] = content
	}
	merged, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode endpoint: %w", err)
	}
	var next management.EndpointSpec
	dec := json.NewDecoder(bytes.NewReader(merged))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&next); err != nil {
		var typeErr *json.UnmarshalTypeError
		if errors.As(err, &typeErr) {
			return problem.InvalidRequest.In(typeErr.Field, "has the wrong type")
		}
		return problem.InvalidRequest.In("body", "does not describe an endpoint")
	}
	next.SetDefaults()
	*spec = next
	return nil
}

func decodeObject(b []byte) (map[string]any, error) {
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("not an object")
	}
	return m, nil
}

// mergePatch implements RFC 7396.
func mergePatch(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(target, name)
		case map[string]any:
			inner, _ := target[name].(map[string]any)
			target[name] = mergePatch(inner, v)
		default:
			target[name] = v
		}
	}
	return target
}
