package ojs

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

// An occurrence is an event that is posted.
type occurrence struct {
	kind, queue, jobType string
}

// A selection is a subscription and the events that it receives.
type selection struct {
	name    string
	rows    []string
	events  []string
	filter  object
	posted  []occurrence
	arrives []string // subjects: the place of each event in posted
}

var selections = []selection{
	{name: "exact", rows: []string{"OJS-FLT-1"}, events: []string{"job.completed"},
		posted:  []occurrence{{kind: "job.completed"}, {kind: "job.completed.x"}, {kind: "job.failed"}, {kind: "Job.completed"}, {kind: "job"}},
		arrives: []string{"0"}},
	{name: "below a prefix", rows: []string{"OJS-FLT-2"}, events: []string{"job.*"},
		posted:  []occurrence{{kind: "job.completed"}, {kind: "job.failed"}, {kind: "workflow.completed"}, {kind: "job"}, {kind: "job.a.b.c"}, {kind: "jobs.x"}},
		arrives: []string{"0", "1", "4"}},
	{name: "several hits", rows: []string{"OJS-FLT-4"}, events: []string{"job.failed", "job.*", "workflow.failed"},
		posted:  []occurrence{{kind: "job.failed"}, {kind: "workflow.failed"}, {kind: "cron.skipped"}},
		arrives: []string{"0", "1"}},
	{name: "queues", rows: []string{"OJS-FLT-5"}, events: []string{"job.*"}, filter: object{"queues": []string{"payments", "billing"}},
		posted:  []occurrence{{"job.failed", "payments", "x"}, {"job.failed", "billing", "y"}, {"job.failed", "email", "x"}},
		arrives: []string{"0", "1"}},
	{name: "job types", rows: []string{"OJS-FLT-6"}, events: []string{"job.*"}, filter: object{"job_types": []string{"payment.process"}},
		posted:  []occurrence{{"job.failed", "a", "payment.process"}, {"job.failed", "a", "invoice.generate"}},
		arrives: []string{"0"}},
	{name: "pattern and filter", rows: []string{"OJS-FLT-7"}, events: []string{"job.failed"}, filter: object{"queues": []string{"payments"}},
		posted:  []occurrence{{"job.completed", "payments", "x"}, {"job.failed", "email", "x"}, {"job.failed", "payments", "x"}},
		arrives: []string{"2"}},
	{name: "both criteria", rows: []string{"OJS-FLT-8"}, events: []string{"job.*"}, filter: object{"queues": []string{"a", "b"}, "job_types": []string{"x", "y"}},
		posted:  []occurrence{{"job.failed", "a", "z"}, {"job.failed", "c", "x"}, {"job.failed", "a", "y"}, {"job.failed", "b", "x"}},
		arrives: []string{"2", "3"}},
	{name: "attribute missing", rows: []string{"OJS-FLT-9"}, events: []string{"workflow.*"}, filter: object{"queues": []string{"payments"}},
		posted: []occurrence{{kind: "workflow.completed"}, {kind: "workflow.failed", jobType: "payments"}}},
	{name: "empty list", rows: []string{"OJS-FLT-9"}, events: []string{"workflow.*"}, filter: object{"queues": []string{}},
		posted: []occurrence{{kind: "workflow.completed"}, {kind: "workflow.failed", queue: "x"}}, arrives: []string{"0", "1"}},
	{name: "no filter", rows: []string{"OJS-FLT-10"}, events: []string{"job.failed"},
		posted: []occurrence{{"job.failed", "a", ""}, {"job.failed", "b", "x"}, {kind: "job.failed"}, {"job.completed", "a", ""}}, arrives: []string{"0", "1", "2"}},
	{name: "workflows", rows: []string{"OJS-FLT-12"}, events: []string{"workflow.completed", "workflow.failed"},
		posted: []occurrence{{kind: "workflow.completed"}, {kind: "workflow.failed"}, {kind: "workflow.started"}}, arrives: []string{"0", "1"}},
}

func TestFiltering(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		for i, sel := range selections {
			t.Run(sel.name, func(t *testing.T) {
				trace.Covers(t, sel.rows...)
				more := object{}
				if sel.filter != nil {
					more["filter"] = sel.filter
				}
				s := r.subscribe("/"+string(rune('a'+i)), sel.events, more)
				for k, e := range sel.posted {
					r.publish(e.kind, job(e.queue, e.jobType), object{"subject": string(rune('0' + k))})
				}
				var got []string
				for _, req := range r.requests(s) {
					got = append(got, decoded(t, req)["subject"].(string))
				}
				slices.Sort(got)
				if !slices.Equal(got, sel.arrives) {
					t.Errorf("got %v, want %v", got, sel.arrives)
				}
				r.send(t, 204, apptest.Call{Method: "DELETE", Path: s.at("")})
			})
		}
	})
}

// catalogue lists the types of the specification's event catalogue (OT-20).
var catalogue = []string{
	"job.completed", "job.failed", "job.discarded", "workflow.completed", "workflow.failed", "job.enqueued", "job.started", "job.retrying",
	"job.cancelled", "job.heartbeat", "job.scheduled", "job.expired", "job.progress", "queue.paused", "queue.resumed", "worker.started",
	"worker.stopped", "worker.quiet", "worker.heartbeat", "workflow.started", "workflow.step_completed", "cron.triggered", "cron.skipped",
}

func TestEveryTypeCanBeSubscribedTo(t *testing.T) {
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.MetaEvents = config.MetaExplicit }})
	all := r.subscribe("/all", []string{"*"})
	t.Run("each by name", func(t *testing.T) {
		trace.Covers(t, "OJS-FLT-11")
		for _, kind := range append(slices.Clone(catalogue), "anything.else-entirely_new.2") {
			s := r.subscribe("/"+kind, []string{kind})
			r.publish(kind)
			if got := r.types(s); !slices.Equal(got, []string{kind}) {
				t.Errorf("%s: got %v", kind, got)
			}
		}
	})
	t.Run("all at once", func(t *testing.T) {
		trace.Covers(t, "OJS-FLT-3")
		got := r.types(all)
		for _, kind := range catalogue {
			if !slices.Contains(got, kind) {
				t.Errorf("%s did not come", kind)
			}
		}
	})
}

func TestPatterns(t *testing.T) {
	r := newRig(t, apptest.Options{})
	t.Run("the document's samples", func(t *testing.T) {
		trace.Covers(t, "OJS-FLT-13")
		for _, sample := range []string{
			`{"url":"https://alerts.example.com/ojs","events":["job.failed","job.discarded"],"filter":{"queues":["payments"]}}`,
			`{"url":"https://partner-api.example.com/callbacks","events":["workflow.completed","workflow.failed"]}`,
			`{"url":"https://monitoring.example.com/ojs-events","events":["*"]}`,
			`{"url":"https://a.example/","events":["job.completed","job.failed"],"filter":{"queues":["payments","billing"],"job_types":["payment.process","invoice.generate"]}}`,
		} {
			got := r.send(t, 201, apptest.Call{Path: subscriptionsPath, Body: sample})
			var sent object
			if err := json.Unmarshal([]byte(sample), &sent); err != nil {
				t.Fatal(err)
			}
			for name, value := range sent {
				if !reflect.DeepEqual(got[name], value) {
					t.Errorf("%s: %s is %v", sample, name, got[name])
				}
			}
		}
	})
	t.Run("other wildcards", func(t *testing.T) {
		trace.Covers(t, "OJS-FLT-14")
		before := r.send(t, 200, apptest.Call{Path: subscriptionsPath})["total"]
		for _, pattern := range []string{"*.failed", "job.*.x", "jo*", "**", "job.**", ".*", "job.", "job *", "*.*"} {
			r.send(t, 400, apptest.Call{Path: subscriptionsPath, Body: object{"url": "https://example.com/", "events": []string{"a.b", pattern}}})
		}
		if after := r.send(t, 200, apptest.Call{Path: subscriptionsPath})["total"]; after != before {
			t.Errorf("%v subscriptions, were %v", after, before)
		}
	})
}
