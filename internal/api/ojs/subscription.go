package ojs

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// profileName is the profile of subscriptions that this API creates.
const profileName = "ojs"

// subscription is the object that clients see. Absent members are left out, not null (OJS-SUB-12).
type subscription struct {
	ID       string          `json:"id"`
	URL      string          `json:"url"`
	Events   []string        `json:"events"`
	Filter   *filter         `json:"filter,omitempty"`
	Active   bool            `json:"active"`
	Secret   string          `json:"secret,omitempty"` // only in the response that creates it
	Metadata godwit.Metadata `json:"metadata,omitempty"`
	// Extensions of ours.
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
	HeaderNames    []string `json:"header_names,omitempty"`
	Profile        string   `json:"profile,omitempty"` // of endpoints that another API created
	CreatedAt      string   `json:"created_at"`
}

// answer shows a subscription bare and also under the member "subscription", where some clients look for it (decision 10).
type answer struct {
	subscription
	Nested *subscription `json:"subscription"`
}

// filter restricts a subscription beyond its event types.
type filter struct {
	Queues   []string `json:"queues,omitempty"`
	JobTypes []string `json:"job_types,omitempty"`
	// Attributes are criteria that only other APIs can set.
	Attributes godwit.Filter `json:"attributes,omitempty"`
}

// The event attributes that the filter compares.
const (
	attributeQueue   = "queue"
	attributeJobType = "job_type"
)

func subscriptionView(e *godwit.Endpoint) subscription {
	v := subscription{
		ID: e.ID.String(), URL: e.URL, Events: e.Patterns, Filter: filterView(e.Filter), Active: e.Status == godwit.EndpointActive,
		Metadata: e.Metadata, TimeoutSeconds: e.Policy.TimeoutSeconds, HeaderNames: e.SealedInfo.HeaderNames,
		CreatedAt: timestamp(e.CreatedAt),
	}
	if e.Profile != profileName {
		v.Profile = e.Profile
	}
	return v
}

func answerOf(v subscription) answer { return answer{subscription: v, Nested: &v} }

func filterView(f godwit.Filter) *filter {
	if len(f) == 0 {
		return nil
	}
	v := &filter{}
	for name, values := range f {
		switch name {
		case attributeQueue:
			v.Queues = values
		case attributeJobType:
			v.JobTypes = values
		default:
			if v.Attributes == nil {
				v.Attributes = godwit.Filter{}
			}
			v.Attributes[name] = values
		}
	}
	return v
}

// timestamp formats a time in UTC with as many digits as it needs; the zero time gives "".
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
