//go:build unix

package faults

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// A Nemesis breaks something, lets the workload meet it, and mends it.
type Nemesis struct {
	Name string
	// Harm is the worst that it may do.
	Harm Harm
	// Whole tells that it concerns all nodes, not a victim.
	Whole bool
	// Strike returns when the fault is mended. The victim may not be ready yet.
	Strike func(x *Run, victim *Node) error
}

// Nemeses are all nemeses, by name in the order in which a run first meets them.
var Nemeses = []Nemesis{
	{Name: Kill, Harm: Torn, Strike: (*Run).kill},
	{Name: "restart-database", Harm: Torn, Whole: true, Strike: (*Run).restartDatabase},
	{Name: Freeze, Harm: Torn, Strike: (*Run).freeze},
	{Name: "clock", Harm: None, Strike: (*Run).moveClock},
	{Name: "cut", Harm: Torn, Strike: cable(Cut)},
	{Name: "failover", Harm: Torn, Whole: true, Strike: (*Run).failOver},
	{Name: "hang", Harm: None, Whole: true, Strike: (*Run).hang},
	{Name: "half-open", Harm: Torn, Strike: cable(HalfOpen)},
	{Name: "rolling", Harm: Away, Whole: true, Strike: (*Run).rollingRestart},
	{Name: "disk-full", Harm: Torn, Whole: true, Strike: (*Run).fillDisk},
	{Name: "snapshot", Harm: None, Whole: true, Strike: (*Run).holdSnapshot},
	{Name: "delay", Harm: Torn, Strike: cable(Slow)},
	{Name: "join", Harm: None, Whole: true, Strike: (*Run).join},
	{Name: "kill-database", Harm: Torn, Whole: true, Strike: (*Run).killDatabase},
	{Name: "leave", Harm: Away, Strike: (*Run).leave},
}

// some is how many acknowledged events a fault lasts that must not stop the cluster.
const some = 60

func (x *Run) kill(victim *Node) error {
	<-victim.Signal(syscall.SIGKILL)
	x.outlast()
	return victim.Start()
}

// freeze makes a zombie of the victim: it goes on with what it had begun when others have taken over.
func (x *Run) freeze(victim *Node) error {
	victim.Signal(syscall.SIGSTOP)
	x.outlast()
	victim.Signal(syscall.SIGCONT)
	return nil
}

func cable(condition Condition) func(*Run, *Node) error {
	return func(x *Run, victim *Node) error {
		victim.SetCables(condition)
		x.outlast()
		victim.SetCables(Whole)
		return nil
	}
}

// outlast waits until others have taken over what a silent node had, or longer.
func (x *Run) outlast() {
	time.Sleep(x.lease + time.Duration(x.random.IntN(1000))*time.Millisecond)
}

func (x *Run) restartDatabase(*Node) error {
	x.Cluster.Database.Primary().Crash()
	x.Cluster.Database.Restart()
	return nil
}

func (x *Run) killDatabase(*Node) error {
	x.Cluster.Database.Primary().Kill()
	x.Cluster.Database.Restart()
	return nil
}

func (x *Run) failOver(*Node) error {
	x.Cluster.Database.FailOver()
	x.Cluster.awaitAll()
	x.Cluster.Database.Rejoin()
	return nil
}

// fillDisk leaves the primary no space until a post was refused, or for a while: the server has space of its own that it uses up first.
func (x *Run) fillDisk(*Node) error {
	disk := x.Cluster.Database.Disk()
	if !disk.Mounted {
		return fmt.Errorf("%w: its disk is no file system of its own", errNotHere)
	}
	if err := disk.Fill(); err != nil {
		return err
	}
	from := x.History.Now()
	for limit := from + x.lease; x.History.Now() < limit && !x.History.refusedSince(from); {
		time.Sleep(10 * time.Millisecond)
	}
	return disk.Free()
}

func (x *Run) holdSnapshot(*Node) error {
	release, err := x.Cluster.Database.Hold()
	if err != nil {
		return err
	}
	defer release()
	x.work.Await(some)
	return nil
}

// moveClock sets the victim's clock twice, and leaves it there.
func (x *Run) moveClock(victim *Node) error {
	for range 2 {
		victim.SetClock([]time.Duration{time.Hour, -time.Hour, time.Minute, 0}[x.random.IntN(4)])
		x.work.Await(some / 2)
	}
	return nil
}

func (x *Run) hang(*Node) error {
	defer x.receivers.Hang(hanging)()
	x.work.Await(some)
	return nil
}

// join adds a node for a while.
func (x *Run) join(*Node) error {
	x.joined++
	n, err := x.Cluster.newNode(fmt.Sprintf("guest-%d", x.joined))
	if err != nil {
		return err
	}
	x.Cluster.guest(n)
	x.Cluster.AwaitReady(n)
	x.work.Await(some)
	x.Cluster.Stop(n)
	return nil
}

func (x *Run) leave(victim *Node) error {
	x.Cluster.Stop(victim)
	if x.others() {
		x.work.Await(some / 2)
	}
	return victim.Start()
}

// rollingRestart restarts all nodes in turn, each when the one before is ready.
func (x *Run) rollingRestart(*Node) error {
	for _, n := range x.Cluster.Nodes {
		if err := x.leave(n); err != nil {
			return err
		}
		x.Cluster.AwaitReady(n)
	}
	return nil
}

func (x *Run) others() bool { return len(x.Cluster.Nodes) > 1 }

// A schedule is an endless list of the nemeses: each comes once in each round, in another order from the second round on.
type schedule struct {
	all    []Nemesis
	random *rand.Rand
	left   []Nemesis
}

func (s *schedule) next() Nemesis {
	if len(s.left) == 0 {
		s.left = append(s.left, s.all...)
	}
	n := s.left[0]
	if s.left = s.left[1:]; len(s.left) == 0 {
		s.random.Shuffle(len(s.all), func(i, j int) { s.all[i], s.all[j] = s.all[j], s.all[i] })
	}
	return n
}
