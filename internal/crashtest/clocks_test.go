package crashtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/slowtest"
)

// A skewedNode is a process whose machine has a wrong clock.
type skewedNode struct {
	*apptest.Process
	t      *testing.T
	client *http.Client
	clock  *os.File
}

func startSkewed(t *testing.T, name string, skew time.Duration, o apptest.ProcessOptions) *skewedNode {
	t.Helper()
	clock, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clock.Close() })
	n := &skewedNode{t: t, clock: clock}
	n.setClock(skew)
	o.Args = append([]string{"--node", name}, o.Args...)
	o.Env = append(o.Env, "GODWIT_FAULT_CLOCK="+clock.Name())
	n.Process = apptest.StartProcess(t, o)
	n.client = n.NewClient()
	return n
}

// setClock sets how far the clock of the process's machine is ahead.
func (n *skewedNode) setClock(skew time.Duration) {
	n.t.Helper()
	var text [8]byte
	binary.NativeEndian.PutUint64(text[:], uint64(skew))
	if _, err := n.clock.WriteAt(text[:], 0); err != nil {
		n.t.Fatal(err)
	}
}

// publish posts an event and returns its id and the time at which the node says that it was created.
func (n *skewedNode) publish(key, body string) (id string, created time.Time) {
	n.t.Helper()
	req, err := http.NewRequest(http.MethodPost, n.URL+"/v1/events?type=order.paid", strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", strconv.Quote(key))
	var accepted struct {
		ID        string    `json:"id"`
		CreatedAt time.Time `json:"created_at"`
	}
	n.do(req, http.StatusAccepted, &accepted)
	return accepted.ID, accepted.CreatedAt
}

func (n *skewedNode) do(req *http.Request, want int, into any) {
	n.t.Helper()
	resp, err := n.client.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		n.t.Fatalf("%s %s: %d %s (%v)", req.Method, req.URL.Path, resp.StatusCode, answer, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		n.t.Fatalf("%s: %v", answer, err)
	}
}

func (n *skewedNode) metric(name string) float64 {
	n.t.Helper()
	resp, err := n.client.Get(n.URL + "/metrics")
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				n.t.Fatal(err)
			}
			return v
		}
	}
	n.t.Fatalf("no metric %s:\n%s", name, page)
	return 0
}

// Two nodes on one database, an hour apart by the clocks of their machines, which are moved on while they run: retries go on on both
// nodes, nothing is sent twice, a key is known on the other node for as long as on the own one, and times agree.
func TestClocksAnHourApart(t *testing.T) {
	slowtest.Needs(t, "the built program")
	program := filepath.Join(t.TempDir(), "godwit")
	if err := apptest.Build(program, "-tags", "faultclock"); err != nil {
		t.Fatal(err)
	}
	// Keys are kept for 24 minutes at this scale: the other node would take them for expired.
	o := apptest.ProcessOptions{Store: apptest.PostgresURL(t), Data: t.TempDir(), Binary: program, Args: []string{"--time-scale", "60"}}
	late := startSkewed(t, "late", -30*time.Minute, o)
	early := startSkewed(t, "early", 30*time.Minute, o)
	early.Key = late.Key // an Idempotency-Key belongs to the API key
	early.client = early.NewClient()
	for _, n := range []*skewedNode{late, early} {
		for n.metric("godwit_shards_owned") != 32 {
		}
		if !n.Log().Has("clock of this machine differs from the database's") {
			t.Errorf("the log does not tell of the clock:\n%s", n.Log())
		}
	}
	sink := apptest.NewSink(t)
	const endpoints, rounds = 12, 3
	for i := range endpoints {
		path := fmt.Sprintf("/%d", i)
		subscribe(t, late.Process, sink.URL(path))
		var seen sync.Map // requests come at the same time
		sink.ReplyFunc(path, func(r *apptest.Request) apptest.Reply {
			if _, before := seen.LoadOrStore(string(r.Body), true); !before {
				return apptest.Status(http.StatusServiceUnavailable)
			}
			return apptest.Status(http.StatusOK)
		})
	}
	events := 0
	publish := func(n, other *skewedNode) {
		key := fmt.Sprintf("key-%d-0123456789", events)
		body := fmt.Sprintf(`{"n":%d}`, events)
		events++
		before := time.Now()
		id, created := n.publish(key, body)
		if off := max(before.Sub(created), time.Until(created)); off > time.Minute {
			t.Errorf("an event was created at %s, off by %s", created, off)
		}
		if again, at := other.publish(key, body); again != id || !at.Equal(created) {
			t.Errorf("the same key made event %s at %s on one node and %s at %s on the other", id, created, again, at)
		}
	}
	for round := range rounds {
		publish(late, early)
		publish(early, late)
		for i := range endpoints {
			sink.WaitOn(fmt.Sprintf("/%d", i), 2*events)
		}
		switch round {
		case 0:
			early.setClock(3 * time.Hour)
		case 1:
			late.setClock(-24 * time.Hour)
		}
	}
	if ahead := early.metric("godwit_clock_ahead_seconds"); ahead < 10000 || ahead > 11600 {
		t.Errorf("a clock that is three hours ahead is said to be ahead by %g seconds", ahead)
	}
	lost := false // a machine that is too busy for beats explains requests that are sent twice
	for _, n := range []*skewedNode{late, early} {
		n.Terminate()
		if n.Log().Has("clock corrected") {
			t.Errorf("a clock was corrected although the database's did not change:\n%s", n.Log())
		}
		lost = lost || n.Log().Has("shards lost to another node")
	}
	for i := range endpoints {
		if n := len(sink.Requests(fmt.Sprintf("/%d", i))); n != 2*events && !lost {
			t.Errorf("endpoint %d got %d requests for %d events that each failed once", i, n, events)
		}
	}
}
