package relay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestCirclesEnd: an endpoint leads back to a source, on this server or by way of another. Each turn would be another
// producer's event under the same key; the source recognises that the delivery has passed it.
func TestCirclesEnd(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-5")
	for _, servers := range []int{1, 2} {
		t.Run(fmt.Sprint(servers, " servers"), func(t *testing.T) {
			sink := apptest.NewSink(t)
			var rigs []*rig
			var sources []source
			for range servers {
				r := &rig{Server: apptest.Start(t, apptest.Options{}), t: t, sink: sink}
				rigs = append(rigs, r)
				sources = append(sources, r.storing("in", apptest.Fields{"scheme": "eds", "event_type": apptest.Fields{}}))
			}
			var last apptest.Endpoint
			for i, r := range rigs {
				next := (i + 1) % servers
				last = r.Endpoint(rigs[next].URL + sources[next].Path)
				rigs[next].Must(apptest.Call{Path: "/v1/sources/" + sources[next].ID + "/rotate", Body: apptest.Fields{
					"overlap_seconds": 0, "credential": apptest.Fields{"id": last.Secret.ID, "secret": last.Secret.Value}}}, nil)
			}
			r := rigs[0]
			r.Endpoint(sink.URL("/seen"), apptest.Fields{"patterns": []string{"round.*"}})
			items := r.Watch()
			r.PublishKey("round.trip", key("round"), `{}`)
			// Posted, it comes round once; what came by the source is not taken again.
			for refused := false; !refused; {
				item := <-items
				if refused = item.Attempt.Status == 422 && item.Status == godwit.DeliveryTerminal; len(sink.Requests("/seen")) > 4 {
					t.Fatal("it goes round and round")
				}
			}
			by := servers - 1 // where it first went in
			if list := rigs[by].rejections(sources[by]); len(list) != 1 || list[0].Code != "relay-loop" || list[0].Status != 422 {
				t.Errorf("recorded as %+v", list)
			}
			seen := sink.WaitOn("/seen", 2)
			if len(seen) != 2 || seen[0].Header.Get("Godwit-Via") != "" {
				t.Errorf("%d arrived, the first by %q", len(seen), seen[0].Header.Get("Godwit-Via"))
			}
			want := sources[0].ID
			if servers == 2 {
				want = sources[1].ID + ", " + want
			}
			if via := seen[1].Header.Get("Godwit-Via"); via != want {
				t.Errorf("came by %q, want %q", via, want)
			}
		})
	}
}

// TestManyHopsEnd: a path with more sources than any setup needs counts as a loop.
func TestManyHopsEnd(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.Endpoint(r.sink.URL("/to"))
	s := r.Source("upstream")
	via := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, godwit.SourceID{15: byte(i + 1)}.String())
		}
		return strings.Join(list, ", ")
	}
	send := func(name string, lines ...string) answer {
		return r.send(delivery{Path: s.Path, Key: key(name), Sign: bearer(s), Header: map[string][]string{"Godwit-Via": lines}})
	}
	r.want(send("short", via(15), via(15), "nonsense, , src_x"), 200)
	if got := r.sink.WaitOn("/to", 1)[0].Header["Godwit-Via"]; len(got) != 1 || got[0] != via(15)+", "+via(15)+", "+s.ID {
		t.Errorf("goes on as %q", got)
	}
	if a := r.want(send("long", via(32)), 422); a.Code != "relay-loop" {
		t.Errorf("code %q", a.Code)
	}
}
