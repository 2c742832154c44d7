package ojs

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestRequiredCapabilities tests the requirements of the document's summary in one run.
func TestRequiredCapabilities(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		s := r.subscribe("/hook", []string{"job.failed", "job.completed"})
		t.Run("create, read, update, delete", func(t *testing.T) {
			trace.Covers(t, "OJS-CON-1")
			u := r.subscribe("/crud", []string{"a"})
			if r.read(u)["url"] != r.sink.URL("/crud") || r.send(t, 200, apptest.Call{Path: subscriptionsPath})["total"] != 2.0 {
				t.Error("it cannot be read")
			}
			if got := r.patch(u, object{"events": []string{"b"}}); !reflect.DeepEqual(got["events"], []any{"b"}) {
				t.Errorf("updated: %v", got)
			}
			r.send(t, 204, apptest.Call{Method: "DELETE", Path: u.at("")})
			r.send(t, 404, apptest.Call{Path: u.at("")})
		})
		t.Run("filtering by type", func(t *testing.T) {
			trace.Covers(t, "OJS-CON-2")
			r.publish("job.completed")
			r.publish("job.started")
			if got := r.types(s); !slices.Equal(got, []string{"job.completed"}) {
				t.Errorf("%v", got)
			}
		})
		t.Run("signed, retried, with an id", func(t *testing.T) {
			trace.Covers(t, "OJS-CON-3", "OJS-CON-4", "OJS-CON-5")
			r.sink.Script("/hook", reply(503, 200)...)
			r.publish("job.failed")
			r.settle()
			r.pass(schedule[0])
			ids := map[string]int{}
			for _, req := range r.requests(s) {
				verify(t, req, s.secret, start.Add(time.Minute))
				ids[req.Header.Get("X-OJS-Delivery-ID")]++
			}
			var counts []int
			for _, n := range ids {
				counts = append(counts, n)
			}
			slices.Sort(counts)
			if !slices.Equal(counts, []int{1, 2}) { // one at once, one at the second attempt
				t.Errorf("ids %v", ids)
			}
		})
		t.Run("attributes and wildcards", func(t *testing.T) {
			trace.Covers(t, "OJS-CON-6")
			w := r.subscribe("/wild", []string{"job.*"}, object{"filter": object{"queues": []string{"q"}, "job_types": []string{"t"}}})
			r.publish("job.started", job("q", "t"))
			r.publish("job.started", job("q", "u"))
			r.publish("cron.skipped", job("q", "t"))
			if got := r.types(w); !slices.Equal(got, []string{"job.started"}) {
				t.Errorf("%v", got)
			}
			all := r.subscribe("/star", []string{"*"})
			r.publish("cron.skipped")
			if got := r.types(all); !slices.Contains(got, "cron.skipped") {
				t.Errorf("%v", got)
			}
		})
		t.Run("rotation, history, retry, test", func(t *testing.T) {
			trace.Covers(t, "OJS-CON-7")
			r.sink.Script("/rec", reply(404, 200)...)
			u := r.subscribe("/rec", []string{"rec.*"})
			ev := r.publish("rec.one")
			r.settle()
			if list := r.list("status=dead&subscription_id=" + u.id); len(list) != 1 {
				t.Errorf("%+v", list)
			}
			fresh := r.rotate(u)
			r.retry(t, 202, r.delivery(ev, u).ID)
			requests := r.requests(u)
			signed(t, requests[1], fresh, u.secret)
			if got := r.send(t, 200, apptest.Call{Method: "POST", Path: u.at("/test")}); got["success"] != true {
				t.Errorf("%v", got)
			}
		})
	})
}

func TestSourceAddressesArePublished(t *testing.T) {
	trace.Covers(t, "OJS-CON-8")
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) {
		c.WebhookIPs = nil
		for _, n := range []string{"192.0.2.0/24", "2001:db8::/48"} {
			var network config.Network
			if err := network.UnmarshalText([]byte(n)); err != nil {
				t.Fatal(err)
			}
			c.WebhookIPs = append(c.WebhookIPs, network)
		}
	}})
	resp := r.Must(apptest.Call{Path: "/.well-known/webhook-ips", Key: "whoever asks, without any key"}, nil)
	var found []string
	for _, text := range regexp.MustCompile(`[0-9a-fA-F:.]+/[0-9]+`).FindAllString(string(resp.Body), -1) {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			found = append(found, prefix.String())
		}
	}
	if !slices.Equal(found, []string{"192.0.2.0/24", "2001:db8::/48"}) {
		t.Errorf("%s", resp.Body)
	}
}

func TestExtensionIsAdvertised(t *testing.T) {
	trace.Covers(t, "OJS-CON-9")
	r := newRig(t, apptest.Options{})
	for _, path := range []string{"/ojs/manifest", "/ojs/v1/manifest"} {
		var m struct {
			Extensions struct {
				Official []struct{ Name, URI, Version string }
			}
		}
		r.Must(apptest.Call{Path: path}, &m)
		if list := m.Extensions.Official; len(list) != 1 || list[0].URI != "urn:ojs:ext:webhooks" || list[0].Version != "1.0.0-rc.1" {
			t.Errorf("%s: %+v", path, list)
		}
	}
}

// TestNothingOutOfScopeIsClaimed reads the pages and the manifest: they claim no push except over HTTP, no aggregation and
// no receiver.
func TestNothingOutOfScopeIsClaimed(t *testing.T) {
	trace.Covers(t, "OJS-CON-10")
	const repository = "../../.."
	pages, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %v: %v", pages, err)
	}
	pages = append(pages, repository+"/README.md")
	claim := regexp.MustCompile(`(?i)web ?sockets?|\bgRPC\b|\bSNS\b|pub/?sub|(?:aggregat|batch)\w* (?:of )?(?:several |many |multiple )?(?:events|jobs|deliveries) (?:in|into) (?:one|a single)|batching|aggregation`)
	denial := regexp.MustCompile(`(?i)\b(?:no|not|never|nor|neither|nothing|none|without|cannot)\b`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, sentence := range regexp.MustCompile(`[.!?]\s|\n\s*\n|\n\s*[-*|#]`).Split(string(text), -1) {
			if claim.MatchString(sentence) && !denial.MatchString(sentence) {
				t.Errorf("%s claims: %q", filepath.Base(page), strings.TrimSpace(sentence))
			}
		}
	}
	own, err := os.ReadFile(repository + "/docs/ojs.md")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?is)No transports but HTTP.*no batching.*no receiver`).Match(own) {
		t.Error("the page does not say what it is not")
	}
	r := newRig(t, apptest.Options{})
	var m struct {
		Protocols    []string
		Capabilities map[string]bool
	}
	r.Must(apptest.Call{Path: "/ojs/manifest"}, &m)
	if !slices.Equal(m.Protocols, []string{"http"}) || m.Capabilities["event_batching"] {
		t.Errorf("%+v", m)
	}
}
