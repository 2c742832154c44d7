package changes_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// nodes starts three servers on one database and returns once they share the shards.
func nodes(t *testing.T) []*apptest.Server {
	t.Helper()
	all := []*apptest.Server{apptest.Start(t, apptest.Options{Postgres: true})}
	for _, name := range []string{"second", "third"} {
		all = append(all, apptest.Start(t, apptest.Options{Store: all[0].Config.Store, Configure: func(c *config.Config) { c.Node = name }}))
	}
	for _, s := range all {
		for n := 0; n != godwit.Shards/3 && n != godwit.Shards/3+1; { // each look takes the keeper's lock
			n = s.App.Engine().Stats().Shards
		}
	}
	return all
}

// receivers posts an event to a node and returns how many endpoints it goes to. It may be called by any goroutine.
func receivers(t *testing.T, s *apptest.Server, eventType string) int {
	t.Helper()
	receipts, err := s.App.Engine().Submit(t.Context(), engine.Submission{
		TenantID: s.Tenant, Events: []engine.Publication{{Type: eventType, ContentType: "application/json", Body: []byte("{}")}},
	})
	if err != nil {
		t.Error(err)
		return -1
	}
	return receipts[0].Fanout[0]
}

// patch changes the patterns of an endpoint. It may be called by any goroutine.
func patch(t *testing.T, s *apptest.Server, ep apptest.Endpoint, pattern string) {
	t.Helper()
	r := s.Call(apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/" + ep.ID.String(), Body: apptest.Fields{"patterns": []string{pattern}}})
	if r.Status != http.StatusOK {
		t.Errorf("patch: %d %s", r.Status, r.Body)
	}
}

// A change through one node holds for every event that another node accepts afterwards.
func TestChangeOnOneNodeCountsOnTheOthers(t *testing.T) {
	all := nodes(t)
	sink := apptest.NewSink(t)
	for n := range rounds(t, 12) {
		a, b, c := all[n%3], all[(n+1)%3], all[(n+2)%3]
		first, second := fmt.Sprintf("first.%d", n), fmt.Sprintf("second.%d", n)
		ep := a.Endpoint(sink.URL("/"), apptest.Fields{"patterns": []string{first}})
		if got := receivers(t, b, first); got != 1 {
			t.Fatalf("round %d: after the creation an event goes to %d endpoints", n, got)
		}
		patch(t, a, ep, second)
		if old, now := receivers(t, b, first), receivers(t, c, second); old != 0 || now != 1 {
			t.Fatalf("round %d: after the change, events go to %d and %d endpoints", n, old, now)
		}
		b.EndpointCall(ep, http.MethodDelete, "", nil)
		if x, y := receivers(t, a, second), receivers(t, c, second); x != 0 || y != 0 {
			t.Fatalf("round %d: after the deletion, events go to %d and %d endpoints", n, x, y)
		}
	}
}

// An endpoint that is paused through one node gets nothing that another node accepts afterwards, whichever node owns it, until
// it is resumed through a third.
func TestPauseOnOneNodeHoldsOnItsOwner(t *testing.T) {
	all := nodes(t)
	sink := apptest.NewSink(t)
	for n := range rounds(t, 9) {
		path, eventType := fmt.Sprintf("/%d", n), fmt.Sprintf("paused.%d", n)
		var paused atomic.Bool
		sink.ReplyFunc(path, func(*apptest.Request) apptest.Reply {
			if paused.Load() {
				t.Errorf("round %d: a request while the endpoint is paused", n)
			}
			return apptest.Status(http.StatusNoContent)
		})
		ep := all[n%3].Endpoint(sink.URL(path), apptest.Fields{"patterns": []string{eventType}})
		all[(n+1)%3].EndpointCall(ep, http.MethodPost, "/pause", nil)
		paused.Store(true)
		ev := all[(n+2)%3].Publish(eventType, `{}`)
		all[n%3].Publish(eventType, `{}`)
		paused.Store(false)
		all[n%3].EndpointCall(ep, http.MethodPost, "/resume", nil)
		all[0].WaitDelivery(ev, ep, godwit.DeliveryAccepted)
		sink.WaitOn(path, 2)
	}
}

// A secret that is rotated through one node signs the deliveries of the endpoint's owner.
func TestSecretRotatedOnOneNodeSignsOnItsOwner(t *testing.T) {
	all := nodes(t)
	sink := apptest.NewSink(t)
	for n := range rounds(t, 6) {
		path, eventType := fmt.Sprintf("/%d", n), fmt.Sprintf("rotated.%d", n)
		ep := all[0].Endpoint(sink.URL(path), apptest.Fields{"patterns": []string{eventType}})
		all[1].Publish(eventType, `{}`)
		if seen := sink.WaitOn(path, 1); !signedWith(&seen[0], ep.Secret.ID) {
			t.Fatalf("round %d: the first delivery is not signed with the first secret", n)
		}
		var next apptest.Secret
		all[n%3].EndpointCall(ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 0}).JSON(t, &next)
		posted := 1
		for renewed := false; !renewed; { // at most changes.Bound long, on a machine that has time for it
			all[(n+1)%3].Publish(eventType, `{}`)
			posted++
			seen := sink.WaitOn(path, posted)
			renewed = signedWith(&seen[posted-1], next.ID)
		}
		all[(n+2)%3].Publish(eventType, `{}`)
		seen := sink.WaitOn(path, posted+1)
		if last := &seen[posted]; !signedWith(last, next.ID) || signedWith(last, ep.Secret.ID) {
			t.Errorf("round %d: a later delivery has the signature %s", n, last.Header.Get("Signature-Input"))
		}
	}
}

// A signing key of an environment that is rotated through one node signs the deliveries of every node, and a revoked one signs nothing more. The
// rotation changes no endpoint.
func TestEnvironmentKeyRotatedOnOneNodeSignsOnTheOthers(t *testing.T) {
	all := nodes(t)
	sink := apptest.NewSink(t)
	const endpoints = 6 // of several owners
	var path []string
	for n := range endpoints {
		path = append(path, fmt.Sprintf("/%d", n))
		all[n%3].Endpoint(sink.URL(path[n]), apptest.Fields{"patterns": []string{"rotated"}, "signing": "environment"})
	}
	var first struct{ Items []struct{ ID string } }
	all[0].Call(apptest.Call{Path: "/v1/environments/default/signing-keys"}).JSON(t, &first)
	if len(first.Items) != 1 {
		t.Fatalf("keys are %+v", first)
	}
	posted := 0
	post := func(from *apptest.Server, key string) (signed bool) {
		from.Publish("rotated", `{}`)
		posted++
		signed = true
		for n := range endpoints {
			seen := sink.WaitOn(path[n], posted)
			signed = signed && signedWith(&seen[posted-1], key)
		}
		return signed
	}
	if !post(all[1], first.Items[0].ID) {
		t.Fatal("the first key does not sign")
	}
	last := first.Items[0].ID
	for n := range rounds(t, 3) {
		var next struct{ ID string }
		r := all[n%3].Call(apptest.Call{Method: http.MethodPost, Path: "/v1/environments/default/signing-keys", Body: `{"overlap_seconds":0}`})
		if r.Status != http.StatusCreated {
			t.Fatalf("rotate: %d %s", r.Status, r.Body)
		}
		r.JSON(t, &next)
		for !post(all[(n+1)%3], next.ID) { // at most changes.Bound long, on a machine that has time for it
		}
		post(all[(n+2)%3], next.ID)
		for i := range endpoints {
			if seen := sink.WaitOn(path[i], posted); signedWith(&seen[posted-1], last) || !signedWith(&seen[posted-1], next.ID) {
				t.Errorf("round %d: a later delivery has the signature %s", n, seen[posted-1].Header.Get("Signature-Input"))
			}
		}
		last = next.ID
	}
}

func signedWith(r *apptest.Request, secret string) bool {
	return strings.Contains(r.Header.Get("Signature-Input"), `"`+secret+`"`)
}

// A key that is revoked on one node is refused by the others.
func TestKeyRevokedOnOneNodeIsRefusedByTheOthers(t *testing.T) {
	all := nodes(t)
	for n := range rounds(t, 6) {
		var made struct {
			ID    string `json:"id"`
			Token string `json:"token"`
		}
		a := all[n%3]
		a.Must(apptest.Call{Path: "/v1/keys", Body: apptest.Fields{"name": "doomed", "scopes": []string{"read"}}}, &made)
		ask := func(s *apptest.Server) int {
			return s.Call(apptest.Call{Path: "/v1/endpoints", Key: made.Token}).Status
		}
		for i, s := range all {
			if got := ask(s); got != http.StatusOK {
				t.Fatalf("round %d: node %d answers %d before", n, i, got)
			}
		}
		a.Must(apptest.Call{Method: http.MethodDelete, Path: "/v1/keys/" + made.ID}, nil)
		if got := ask(a); got != http.StatusUnauthorized {
			t.Errorf("round %d: the node that revoked it answers %d", n, got)
		}
		for _, s := range all {
			for ask(s) != http.StatusUnauthorized { // at most changes.Bound long
			}
		}
	}
}

// In a storm of changes on all nodes, each event goes by the changes that were answered before it, and none waits for ever.
func TestStormOfChanges(t *testing.T) {
	all := nodes(t)
	sink := apptest.NewSink(t)
	const changers = 6
	changes := rounds(t, 15)
	endpoints := make([]apptest.Endpoint, changers)
	for i := range endpoints {
		endpoints[i] = all[i%3].Endpoint(sink.URL("/"), apptest.Fields{"patterns": []string{fmt.Sprintf("storm.%d.0", i)}})
	}
	var storm sync.WaitGroup
	for i, ep := range endpoints {
		storm.Go(func() {
			for n := 1; n <= changes; n++ {
				before, now := fmt.Sprintf("storm.%d.%d", i, n-1), fmt.Sprintf("storm.%d.%d", i, n)
				patch(t, all[(i+n)%3], ep, now)
				for k := range all {
					if unwanted, wanted := receivers(t, all[k], before), receivers(t, all[k], now); unwanted != 0 || wanted != 1 {
						t.Errorf("endpoint %d, change %d, node %d: events go to %d and %d endpoints", i, n, k, unwanted, wanted)
					}
				}
			}
		})
	}
	storm.Wait()
}
