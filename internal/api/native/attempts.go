package native

import (
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Attempt is the record of one delivery attempt.
type Attempt struct {
	ID                string           `json:"id" example:"att_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	DeliveryID        string           `json:"delivery_id"`
	EventID           string           `json:"event_id"`
	EndpointID        string           `json:"endpoint_id"`
	N                 int              `json:"n" doc:"1 for the first, over all runs"`
	Trigger           string           `json:"trigger"`
	StartedAt         time.Time        `json:"started_at"`
	DurationMS        float64          `json:"duration_ms"`
	URL               string           `json:"url"`
	Status            int              `json:"status,omitempty" doc:"HTTP status; absent when none arrived"`
	Outcome           string           `json:"outcome" enum:"accepted,transient,terminal"`
	Reason            string           `json:"reason"`
	FailureClass      string           `json:"failure_class,omitempty" enum:"transport,application"`
	ReceiverState     string           `json:"receiver_state,omitempty" enum:"unknown" doc:"unknown: the receiver may or may not have got it"`
	RetryAfterSeconds float64          `json:"retry_after_seconds,omitempty" doc:"Least wait that the receiver asked for"`
	NextAt            *time.Time       `json:"next_at,omitempty" doc:"When the next attempt is due"`
	Trace             godwit.Trace     `json:"trace" doc:"What was seen, for people who ask what happened"`
	Timing            *AttemptTiming   `json:"timing,omitempty" doc:"Where the time went; absent if it was not measured"`
	Request           *AttemptRequest  `json:"request,omitempty" doc:"The request as it was sent, secrets masked. Of acknowledged attempts a busy server keeps it of a sample"`
	Response          *AttemptResponse `json:"response,omitempty" doc:"The response as it was received; absent if there was none"`
}

// AttemptTiming says where the time of an attempt went, in milliseconds. The parts follow each other.
type AttemptTiming struct {
	DNSMS       float64 `json:"dns_ms" doc:"To resolve the name; 0 if the connection was used before"`
	ConnectMS   float64 `json:"connect_ms"`
	TLSMS       float64 `json:"tls_ms"`
	FirstByteMS float64 `json:"first_byte_ms" doc:"From the first byte of the request to the first of the response"`
	TotalMS     float64 `json:"total_ms" doc:"Of the whole attempt; more than the parts together by the reading of the response"`
}

// AttemptRequest is a request as it was sent.
type AttemptRequest struct {
	URL     string        `json:"url"`
	Headers []HeaderField `json:"headers"`
}

// AttemptResponse is a response as it was received.
type AttemptResponse struct {
	Status    int           `json:"status"`
	Headers   []HeaderField `json:"headers" doc:"Kept where those of the request are"`
	Body      string        `json:"body" doc:"Up to 4 KiB"`
	Truncated bool          `json:"truncated" doc:"There is more of the body"`
}

// HeaderField is a field of a header.
type HeaderField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func headerFields(list []string) []HeaderField {
	fields := make([]HeaderField, len(list))
	for i, field := range list {
		fields[i].Name, fields[i].Value, _ = strings.Cut(field, ": ")
	}
	return fields
}

// showWire moves what is known of the wire from the trace to members of their own.
func (v *Attempt) showWire(a *godwit.Attempt) {
	w := a.Trace.Wire
	v.Trace.Wire = nil
	if w == nil {
		w = &godwit.Wire{}
	}
	if w.Timing != (godwit.WireTiming{}) {
		ms := func(i int) float64 { return float64(w.Timing[i]) / 1000 }
		v.Timing = &AttemptTiming{DNSMS: ms(0), ConnectMS: ms(1), TLSMS: ms(2), FirstByteMS: ms(3), TotalMS: milliseconds(a.Duration)}
	}
	if len(w.Request) > 0 {
		v.Request = &AttemptRequest{URL: a.URL, Headers: headerFields(w.Request)}
	}
	if a.Status != 0 {
		v.Response = &AttemptResponse{Status: a.Status, Headers: headerFields(w.Response), Body: a.Trace.Body, Truncated: w.Cut}
	}
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
	v.showWire(a)
	return v
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
