package conformance

import (
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// What the API says, as a client of its own would read it.
type (
	deliveryView struct {
		ID         string        `json:"id"`
		EventID    string        `json:"event_id"`
		EndpointID string        `json:"endpoint_id"`
		Status     string        `json:"status"`
		Reason     string        `json:"reason"`
		Count      int           `json:"attempt_count"`
		LastStatus int           `json:"last_status"`
		DueAt      *time.Time    `json:"due_at"`
		Attempts   []attemptView `json:"attempts"`
	}
	attemptView struct {
		ID            string     `json:"id"`
		EventID       string     `json:"event_id"`
		N             int        `json:"n"`
		Trigger       string     `json:"trigger"`
		StartedAt     time.Time  `json:"started_at"`
		DurationMS    float64    `json:"duration_ms"`
		URL           string     `json:"url"`
		Status        int        `json:"status"`
		Outcome       string     `json:"outcome"`
		Reason        string     `json:"reason"`
		FailureClass  string     `json:"failure_class"`
		ReceiverState string     `json:"receiver_state"`
		RetryAfter    float64    `json:"retry_after_seconds"`
		NextAt        *time.Time `json:"next_at"`
		Trace         struct {
			Body       string          `json:"response_body"`
			Link       string          `json:"link"`
			RetryAfter string          `json:"retry_after"`
			Problem    *godwit.Problem `json:"problem"`
			Hops       []godwit.Hop    `json:"hops"`
			Actor      string          `json:"actor"`
		} `json:"trace"`
	}
	endpointView struct {
		ID           string `json:"id"`
		URL          string `json:"url"`
		Method       string `json:"method"`
		Status       string `json:"status"`
		StatusReason string `json:"status_reason"`
		Version      int64  `json:"version"`
	}
	noticeView struct {
		ID         string `json:"id"`
		Kind       string `json:"kind"`
		Detail     string `json:"detail"`
		Link       string `json:"link"`
		EndpointID string `json:"endpoint_id"`
		EventID    string `json:"event_id"`
	}
)

// ended is when the attempt was over.
func (a *attemptView) ended() time.Time {
	return a.StartedAt.Add(time.Duration(a.DurationMS * float64(time.Millisecond)))
}

// gap is the time between the end of an attempt and the start of the next one.
func (d *deliveryView) gap(n int) time.Duration {
	return d.Attempts[n].StartedAt.Sub(d.Attempts[n-1].ended())
}

// outcomes are those of the attempts, in order.
func (d *deliveryView) outcomes() []string {
	list := []string{}
	for _, a := range d.Attempts {
		list = append(list, a.Outcome)
	}
	return list
}

// delivery asks the API for the delivery of an event to an endpoint, with its attempts.
func (r *rig) delivery(ev godwit.EventID, ep apptest.Endpoint) deliveryView {
	r.t.Helper()
	var d deliveryView
	r.Must(apptest.Call{Path: "/v1/deliveries/" + r.Delivery(ev, ep).ID.String()}, &d)
	return d
}

// endpoint asks the API for an endpoint.
func (r *rig) endpoint(ep apptest.Endpoint) endpointView {
	r.t.Helper()
	var v endpointView
	r.Must(apptest.Call{Path: "/v1/endpoints/" + ep.ID.String()}, &v)
	return v
}

// notices asks the API for the notices about an endpoint, newest first.
func (r *rig) notices(ep apptest.Endpoint) []noticeView {
	r.t.Helper()
	var about []noticeView
	cursor := ""
	for {
		var list struct {
			Items []noticeView `json:"items"`
			Next  string       `json:"next_cursor"`
		}
		r.Must(apptest.Call{Path: "/v1/notices?limit=200&cursor=" + cursor}, &list)
		for _, n := range list.Items {
			if n.EndpointID == ep.ID.String() {
				about = append(about, n)
			}
		}
		if list.Next == "" {
			return about
		}
		cursor = list.Next
	}
}

// resume sets an endpoint free, as an operator does.
func (r *rig) resume(ep apptest.Endpoint) {
	r.t.Helper()
	r.EndpointCall(ep, http.MethodPost, "/resume", nil)
}
