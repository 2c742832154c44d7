package catalogue_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func names(s *catalogue.Standard) []string {
	var list []string
	for _, t := range s.Types() {
		list = append(list, t.Name)
	}
	return list
}

func paths(errs []godwit.FieldError) []string {
	list := []string{}
	for _, e := range errs {
		list = append(list, e.Field)
	}
	return slices.Compact(list) // several things may be wrong with one
}

// edited is a type's own example with one change made to it.
func edited(t *testing.T, s *catalogue.Standard, eventType string, edit func(event map[string]any)) []byte {
	t.Helper()
	for _, entry := range s.Types() {
		if entry.Name != eventType {
			continue
		}
		var event map[string]any
		must(t, json.Unmarshal(entry.Example, &event))
		edit(event)
		text, err := json.Marshal(event)
		must(t, err)
		return text
	}
	t.Fatalf("no type %s", eventType)
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The types are those of the rows CCW-EVT-19..24 and OJS-FLT-11, each with a schema and a valid example. Other tests show
// that events of these types are accepted and delivered.
func TestStandardsListTheirTypes(t *testing.T) {
	for name, groups := range map[string]map[string]string{
		"cybercube": {
			"CCW-EVT-19": "project.created project.updated project.deleted project.archived project.restored",
			"CCW-EVT-20": "task.created task.updated task.deleted task.assigned task.completed task.reopened",
			"CCW-EVT-21": "invoice.created invoice.updated invoice.sent invoice.paid invoice.voided invoice.payment.failed invoice.payment.succeeded",
			"CCW-EVT-22": "user.created user.updated user.deleted user.invited user.activated user.suspended",
			"CCW-EVT-23": "milestone.created milestone.updated milestone.completed milestone.missed",
			"CCW-EVT-24": "deliverable.created deliverable.updated deliverable.submitted deliverable.approved deliverable.rejected",
		},
		"ojs": {
			"": "job.completed job.failed job.discarded workflow.completed workflow.failed job.enqueued job.started job.retrying job.cancelled job.heartbeat job.scheduled job.expired job.progress queue.paused queue.resumed worker.started worker.stopped worker.quiet worker.heartbeat workflow.started workflow.step_completed cron.triggered cron.skipped",
		},
	} {
		s, ok := catalogue.StandardNamed(name)
		if !ok || s.Name() != name {
			t.Fatalf("no standard %q", name)
		}
		var all []string
		for _, group := range groups {
			all = append(all, strings.Fields(group)...)
		}
		listed := names(s)
		slices.Sort(all)
		slices.Sort(listed)
		if !slices.Equal(all, listed) {
			t.Errorf("%s lists %v, want %v", name, listed, all)
		}
		for _, entry := range s.Types() {
			if entry.Description == "" || len(entry.Schemas) != 1 || len(entry.Example) == 0 || !s.Has(entry.Name) {
				t.Errorf("%s: entry is not complete", entry.Name)
			}
			schema, err := catalogue.Compile(entry.Schemas[0].Schema)
			must(t, err)
			if errs := append(schema.Check(entry.Example), s.Check(entry.Example)...); len(errs) > 0 {
				t.Errorf("%s: example does not fit: %v", entry.Name, errs)
			}
		}
	}
	if n := len(catalogue.Cybercube().Types()); n != 33 {
		t.Errorf("%d CYBERCUBE types", n)
	}
	if n := len(catalogue.OJS().Types()); n != 23 {
		t.Errorf("%d OJS types", n)
	}
	if _, ok := catalogue.StandardNamed("eds"); ok {
		t.Error("eds has no catalogue")
	}
}

func object(event map[string]any) map[string]any {
	return event["data"].(map[string]any)["object"].(map[string]any)
}

func TestCybercubeEventsAreCheckedBySchema(t *testing.T) {
	s := catalogue.Cybercube()
	for name, c := range map[string]struct {
		eventType string
		edit      func(map[string]any)
		want      []string
	}{
		"as posted, without what the server adds": {"project.created", func(e map[string]any) {
			for _, m := range []string{"id", "api_version", "created_at", "account_id", "livemode"} {
				delete(e, m)
			}
		}, nil},
		"livemode that is no boolean": {"project.created", func(e map[string]any) { e["livemode"] = "yes" }, []string{"livemode"}},
		"no id":                       {"project.created", func(e map[string]any) { delete(object(e), "id") }, []string{"data.object.id"}},
		"no object":                   {"task.created", func(e map[string]any) { delete(object(e), "object") }, []string{"data.object.object"}},
		"another resource":            {"task.created", func(e map[string]any) { object(e)["object"] = "project" }, []string{"data.object.object"}},
		"no dates": {"project.created", func(e map[string]any) {
			delete(object(e), "created_at")
			delete(object(e), "updated_at")
		}, []string{"data.object.created_at", "data.object.updated_at"}},
		"update without created_at": {"project.updated", func(e map[string]any) { delete(object(e), "created_at") }, nil},
		"update without updated_at": {"project.updated", func(e map[string]any) { delete(object(e), "updated_at") }, []string{"data.object.updated_at"}},
		"no date":                   {"project.created", func(e map[string]any) { object(e)["created_at"] = "yesterday" }, []string{"data.object.created_at"}},
		"previous attributes of what is new": {"project.created", func(e map[string]any) {
			e["data"].(map[string]any)["previous_attributes"] = map[string]any{"name": "x"}
		}, []string{"data.previous_attributes"}},
		"previous attributes that are null": {"project.archived", func(e map[string]any) {
			e["data"].(map[string]any)["previous_attributes"] = nil
		}, []string{"data.previous_attributes"}},
		"no data":                    {"project.created", func(e map[string]any) { delete(e, "data") }, []string{"data"}},
		"data that is a list":        {"project.created", func(e map[string]any) { e["data"] = []any{} }, []string{"data"}},
		"a member that is not known": {"project.created", func(e map[string]any) { e["attempt"] = 1 }, []string{"attempt"}},
		"a type outside the catalogue": {"user.updated", func(e map[string]any) {
			e["type"] = "user.subscription.upgraded"
			delete(e["data"].(map[string]any), "previous_attributes")
			object(e)["created_at"] = "2026-01-17T12:00:00Z"
		}, nil},
		"an update outside it":          {"user.updated", func(e map[string]any) { e["type"] = "user.subscription.updated" }, nil},
		"outside it, checked as others": {"user.created", func(e map[string]any) { e["type"] = "user.subscription.upgraded"; delete(object(e), "id") }, []string{"data.object.id"}},
		"a payment as the object":       {"invoice.payment.failed", func(e map[string]any) { object(e)["object"] = "payment" }, nil},
		"capital letters":               {"project.created", func(e map[string]any) { e["type"] = "Project.Created" }, []string{"type"}},
		"one segment":                   {"project.created", func(e map[string]any) { e["type"] = "project" }, []string{"type"}},
		"four segments":                 {"project.created", func(e map[string]any) { e["type"] = "a.b.c.d" }, []string{"type"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := paths(s.Check(edited(t, s, c.eventType, c.edit))); !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestOJSEnvelopeIsChecked(t *testing.T) {
	s := catalogue.OJS()
	for name, c := range map[string]struct {
		edit func(map[string]any)
		want []string
	}{
		"as in the document":             {func(map[string]any) {}, nil},
		"members of one's own":           {func(e map[string]any) { e["data"].(map[string]any)["x"] = []any{1}; e["traceparent"] = "00-1" }, nil},
		"a type of one's own":            {func(e map[string]any) { e["type"] = "billing.closed" }, nil},
		"without subject and data":       {func(e map[string]any) { delete(e, "subject"); delete(e, "data") }, nil},
		"without any":                    {func(e map[string]any) { clear(e) }, []string{"id", "source", "specversion", "time", "type"}},
		"another version":                {func(e map[string]any) { e["specversion"] = "2.0" }, []string{"specversion"}},
		"a time that is none":            {func(e map[string]any) { e["time"] = "2026-02-15" }, []string{"time"}},
		"an id that is a number":         {func(e map[string]any) { e["id"] = 7 }, []string{"id"}},
		"data that is text":              {func(e map[string]any) { e["data"] = "x" }, []string{"data"}},
		"a queue that is a number":       {func(e map[string]any) { e["data"].(map[string]any)["queue"] = 1 }, []string{"data.queue"}},
		"a result that is text":          {func(e map[string]any) { e["data"].(map[string]any)["result"] = "ok" }, []string{"data.result"}},
		"duration and attempt as text":   {func(e map[string]any) { d := e["data"].(map[string]any); d["duration_ms"] = "1"; d["attempt"] = 0 }, []string{"data.attempt", "data.duration_ms"}},
		"a type that cannot be a type":   {func(e map[string]any) { e["type"] = "job..x" }, []string{"type"}},
		"a source that cannot be parsed": {func(e map[string]any) { e["source"] = "ojs://%zz" }, []string{"source"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := paths(s.Check(edited(t, s, "job.completed", c.edit))); !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	for _, text := range []string{"", "[]", "{", "null", `{"id":1e999999999}`, strings.Repeat("[", 1000) + strings.Repeat("]", 1000), `{} {}`} {
		if len(s.Check([]byte(text))) == 0 {
			t.Errorf("%.20q is an event", text)
		}
	}
}
