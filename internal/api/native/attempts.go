package native

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Attempt is the record of one delivery attempt.
type Attempt struct {
	ID                string       `json:"id" example:"att_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	DeliveryID        string       `json:"delivery_id"`
	EventID           string       `json:"event_id"`
	EndpointID        string       `json:"endpoint_id"`
	N                 int          `json:"n" doc:"1 for the first, over all runs"`
	Trigger           string       `json:"trigger"`
	StartedAt         time.Time    `json:"started_at"`
	DurationMS        float64      `json:"duration_ms"`
	URL               string       `json:"url"`
	Status            int          `json:"status,omitempty" doc:"HTTP status; absent when none arrived"`
	Outcome           string       `json:"outcome" enum:"accepted,transient,terminal"`
	Reason            string       `json:"reason"`
	FailureClass      string       `json:"failure_class,omitempty" enum:"transport,application"`
	ReceiverState     string       `json:"receiver_state,omitempty" enum:"unknown" doc:"unknown: the receiver may or may not have got it"`
	RetryAfterSeconds float64      `json:"retry_after_seconds,omitempty" doc:"Least wait that the receiver asked for"`
	NextAt            *time.Time   `json:"next_at,omitempty" doc:"When the next attempt is due"`
	Trace             godwit.Trace `json:"trace" doc:"What was seen, for people who ask what happened"`
}

func attemptView(a *godwit.Attempt) Attempt {
	v := Attempt{
		ID: a.ID.String(), DeliveryID: a.DeliveryID.String(), EventID: a.EventID.String(), EndpointID: a.EndpointID.String(),
		N: a.N, Trigger: string(a.Trigger), StartedAt: a.StartedAt.UTC(), DurationMS: milliseconds(a.Duration), URL: a.URL,
		Status: a.Status, Outcome: string(a.Verdict.Outcome), Reason: string(a.Verdict.Reason), FailureClass: string(a.Verdict.Class),
		RetryAfterSeconds: a.Verdict.RetryAfter.Seconds(), NextAt: timestamp(a.NextAt), Trace: a.Trace,
	}
	if a.Verdict.ReceiverUnknown {
		v.ReceiverState = "unknown"
	}
	return v
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
