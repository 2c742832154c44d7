package command_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
)

// TestFailureAnalysis crashes at every point, for the classes and strategies that differ, and compares the results with
// the tables of docs/commands.md, of which it generates every line.
func TestFailureAnalysis(t *testing.T) {
	page, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	calls := []string{"ledgered", "called", "recorded"}
	for _, c := range []struct {
		name   string
		points []string
		make   func(w *watch) (command.Declaration, command.Handler)
	}{
		{"I1", without(command.FaultPoints, calls...), func(w *watch) (command.Declaration, command.Handler) {
			return command.Declaration{}, command.HandlerFunc(w.placing)
		}},
		{"S1", command.FaultPoints, func(w *watch) (command.Declaration, command.Handler) {
			w.bank.honoursKeys = true
			return command.Declaration{Class: command.I3, Shielding: []command.Strategy{command.S1}}, watched{w, compensating{reconciling{charging{w.bank}}}}
		}},
		{"S3", command.FaultPoints, func(w *watch) (command.Declaration, command.Handler) {
			return command.Declaration{Class: command.I3, Shielding: []command.Strategy{command.S3}}, watched{w, compensating{reconciling{charging{w.bank}}}}
		}},
		{"S4", []string{"called"}, func(w *watch) (command.Declaration, command.Handler) {
			w.bank.twice = true
			return command.Declaration{Class: command.I3, Shielding: []command.Strategy{command.S4}}, watched{w, compensating{reconciling{charging{w.bank}}}}
		}},
	} {
		for _, point := range c.points {
			t.Run(c.name+"/"+point, func(t *testing.T) {
				w := &watch{bank: openBank(), shop: newShop(command.NewMemoryStore())}
				defer w.bank.Close()
				d, h := c.make(w)
				d.Entity, d.Action, d.Description, d.Justification, d.Confirmation = "order", "charge", "For a test.", "For a test.", point == "confirmed"
				check(w.shop.Registry.Register(d, h))
				if line := w.analyse(c.name, point); !strings.Contains(string(page), "\n"+line+"\n") {
					t.Errorf("docs/commands.md does not say:\n%s", line)
				}
			})
		}
	}
}

func without(list []string, others ...string) (rest []string) {
	for _, s := range list {
		if !strings.Contains(strings.Join(others, " "), s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// A watch counts the effects of one command.
type watch struct {
	shop    *shop
	bank    *bank
	effects atomic.Int64 // effects in the store's transaction
	runs    atomic.Int64 // runs of the handler
	asked   atomic.Int64 // questions by reconciliation
}

func (w *watch) placing(context.Context, *command.Call) (*command.Outcome, error) {
	w.runs.Add(1)
	return &command.Outcome{Summary: "placed", Effects: []command.Effect{command.MemoryEffect[int64]{
		Do: func() (int64, error) { return w.effects.Add(1), nil }, Undo: func() { w.effects.Add(-1) },
	}}}, nil
}

// watched is a handler whose runs are counted.
type watched struct {
	*watch
	compensating
}

func (h watched) Execute(ctx context.Context, c *command.Call) (*command.Outcome, error) {
	h.runs.Add(1)
	return h.compensating.Execute(ctx, c)
}

func (h watched) Reconcile(ctx context.Context, c *command.Call) (command.Found, error) {
	h.asked.Add(1)
	return h.compensating.Reconcile(ctx, c)
}

// analyse lets a process die at a point and other processes continue. It returns the line of the table.
func (w *watch) analyse(name, point string) string {
	ctx := context.Background()
	w.die(point)
	stored := w.stored()
	outside := w.outside()

	x, _, stop := w.shop.Start("")
	defer stop()
	a := w.shop.Submit(ctx, x, "order", "charge", "O-17", `{}`)
	repeat := map[command.Decision]string{command.FirstSeen: "is executed", command.DuplicateReplayed: "“processing”"}[a.Decision]
	if a.Decision == command.DuplicateReplayed && a.Outcome != nil {
		repeat = "the outcome"
	}
	runs, asked, calls := w.runs.Load(), w.asked.Load(), w.calls()
	w.shop.Pass(61 * time.Second)
	end := w.shop.Ended(x, a.CommandID)
	recovery := w.recovery(w.runs.Load()-runs, w.asked.Load()-asked, w.calls()-calls)
	return fmt.Sprintf("| %s `%s` | %s | %s | %s | %s | %s, %s |", name, point, stored, outside, repeat, recovery, end.Status, w.outside())
}

// die runs a process up to a point.
func (w *watch) die(point string) {
	first := point
	switch point {
	case "recovered": // after another executor died
		first = "started"
	case "observed": // a repeat
		first = ""
	}
	x, crashed, stop := w.shop.Start(first)
	defer stop()
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		a := w.shop.Submit(crashed, x, "order", "charge", "O-17", `{}`)
		if point == "confirmed" {
			_, err := x.Confirm(crashed, command.Caller{Tenant: "shop", Actor: "customer"}, a.CommandID, a.Token, "")
			check(err)
		}
	}()
	<-submitted
	switch point {
	case "recovered":
		w.shop.Pass(61 * time.Second)
		_, crashed, stop := w.shop.Start(point)
		<-crashed.Done()
		stop()
	case "observed":
		x, crashed, stop := w.shop.Start(point)
		go w.shop.Submit(context.Background(), x, "order", "charge", "O-17", `{}`)
		<-crashed.Done()
		stop()
	}
}

// stored describes the record in the store.
func (w *watch) stored() string {
	ctx := context.Background()
	heads, err := w.shop.Store.EvidenceHeads(ctx, "", 1)
	check(err)
	if len(heads) == 0 {
		return "nothing"
	}
	items, err := w.shop.Store.Evidence(ctx, command.EvidenceQuery{Tenant: "shop", Limit: 1})
	check(err)
	rec, err := w.shop.Store.FindCommand(ctx, "shop", items[0].CommandID)
	check(err)
	text := strings.ReplaceAll(string(rec.Status), "_", " ")
	for _, entry := range rec.Ledger {
		text += map[command.LedgerState]string{command.CallStarted: ", call begun", command.CallDone: ", call answered"}[entry.State]
	}
	return text
}

func (w *watch) calls() int64 {
	w.bank.mu.Lock()
	defer w.bank.mu.Unlock()
	return int64(w.bank.asked)
}

// outside describes the external effects.
func (w *watch) outside() string {
	w.bank.mu.Lock()
	defer w.bank.mu.Unlock()
	n := len(w.bank.charges) + int(w.effects.Load())
	text := fmt.Sprintf("%d effects", n)
	if n == 1 {
		text = "1 effect"
	}
	if w.bank.refunds > 0 {
		text += fmt.Sprintf(" (%d taken back)", w.bank.refunds)
	}
	return text
}

func (w *watch) recovery(runs, asked, calls int64) string {
	var did []string
	if asked > 0 {
		did = append(did, "asks the provider")
	}
	if runs > 0 {
		did = append(did, "runs the handler")
	}
	switch before := w.calls() - calls; {
	case calls > 0 && before > 0:
		did = append(did, "which calls again, with the same key")
	case calls > 0:
		did = append(did, "which calls")
	case runs > 0 && before > 0:
		did = append(did, "which does not call again")
	}
	if len(did) == 0 {
		return "nothing is left to do"
	}
	return strings.Join(did, ", ")
}
