package ojs

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// profileName is the dialect of subscriptions that are made here.
const profileName = "ojs"

// subscription is the object as clients see it. What is absent is left out, not null (OJS-SUB-12).
type subscription struct {
	ID       string          `json:"id"`
	URL      string          `json:"url"`
	Events   []string        `json:"events"`
	Filter   *filter         `json:"filter,omitempty"`
	Active   bool            `json:"active"`
	Secret   string          `json:"secret,omitempty"` // only in the answer to its creation
	Metadata godwit.Metadata `json:"metadata,omitempty"`
	// Extensions.
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
	HeaderNames    []string `json:"header_names,omitempty"`
	Profile        string   `json:"profile,omitempty"` // of endpoints that another API made
	CreatedAt      string   `json:"created_at"`
}

// answer is a subscription bare and, for the tools that look for it there, under its own name (decision 10).
type answer struct {
	subscription
	Nested *subscription `json:"subscription"`
}

// filter narrows a subscription beside its event types.
type filter struct {
	Queues   []string `json:"queues,omitempty"`
	JobTypes []string `json:"job_types,omitempty"`
	// Attributes are criteria that only other APIs can set.
	Attributes godwit.Filter `json:"attributes,omitempty"`
}

// The attributes of an event that the filter looks at.
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

// timestamp renders a time in UTC with as many digits as it needs; "" for none.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
