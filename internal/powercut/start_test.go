package powercut

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/store/sqlite/faultdisk"
)

// The n-th operation of a kind fails during the first start of a server, once or for a while, for each n. The server starts
// nevertheless, or ends and says why. The file is sound afterwards, the next start works, and nothing acknowledged is lost.
func TestFaultsDuringStart(t *testing.T) {
	slowtest.Needs(t, "processes that start on a failing disk")
	for _, f := range []faultdisk.Fault{
		{Op: faultdisk.Open, Errno: faultdisk.EIO, Times: 1},
		{Op: faultdisk.Write, Errno: faultdisk.EIO, Times: 1},
		{Op: faultdisk.Write, Errno: faultdisk.ENOSPC, Times: 3},
		{Op: faultdisk.Sync, Errno: faultdisk.EIO, Times: 1},
		{Errno: faultdisk.EIO, Times: 3},
	} {
		t.Run(fmt.Sprintf("%s %s %d times", f.Op, f.Errno, f.Times), func(t *testing.T) {
			t.Parallel() // each start is a process of its own
			failStarts(t, f)
		})
	}
}

// diskReasons are the words of SQLite and of the system for what is wrong with a disk.
var diskReasons = regexp.MustCompile(`the server failed: .*(I/O error|input/output error|disk is full|no space left|unable to open database file)`)

func failStarts(t *testing.T, f faultdisk.Fault) {
	step := int64(1)
	if os.Getenv(faultsVariable) == "" && f.Op != faultdisk.Sync && f.Op != faultdisk.Open {
		step = 23
	}
	ended, started := 0, 0
	for f.N = 1; !t.Failed(); f.N += step {
		s := newSeries(t, uint64(f.N))
		data := s.directory("first")
		p := &plan{Data: data, Survivors: s.directory("after"), Ring: s.ring, Survival: faultdisk.Everything, WALPages: 1000, Fault: &f}
		l := begin(t, p)
		if l.ready {
			started++
			s.greeted(l)
			l.stop()
		}
		<-l.ended
		l.stdin.Close()
		switch code := l.cmd.ProcessState.ExitCode(); {
		case code == exitFault && !l.ready:
			ended++
			if text := l.stderr.String(); !diskReasons.MatchString(text) {
				t.Errorf("operation %d: the server does not say why it ended: %s", f.N, text)
			}
		case code == exitCut && l.ready:
		default:
			t.Errorf("operation %d: the server ended with %d: %s", f.N, code, l.stderr)
		}
		s.startAgain(data)
		if l.ready && l.Failed == 0 { // the fault comes later than the start
			break
		}
	}
	t.Logf("up to operation %d: %d starts failed, %d servers started", f.N, ended, started)
	if ended == 0 {
		t.Error("no start failed: the test shows nothing")
	}
}

func (s *series) greeted(l *life) {
	s.promise.note(func() { s.promise.tenant, s.promise.keys[l.Key] = l.Tenant, false })
}

// startAgain starts a server on a sound disk with the files that the failed one left, and uses it.
func (s *series) startAgain(data string) {
	s.t.Helper()
	copied := s.directory("copy")
	if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
		s.t.Fatal(err)
	}
	if err := integrity(filepath.Join(copied, "godwit.db")); err != nil {
		s.t.Errorf("after the faults: %v", err)
	}
	after := s.directory("second")
	l := begin(s.t, &plan{Data: data, Survivors: after, Ring: s.ring, Survival: faultdisk.Nothing, WALPages: 1000})
	if !l.ready {
		s.t.Fatalf("the second server did not start:\n%s", l.stderr)
	}
	s.greeted(l)
	c := &client{t: s.t, life: l, http: http.DefaultClient, promise: s.promise}
	c.subscribe(s.receiver.URL)
	if status := c.post(0); status != http.StatusAccepted {
		s.t.Errorf("the second server answers %d", status)
	}
	l.stop()
	l.end(s.t)
	for _, f := range s.promise.check(after, s.directory("check")) {
		s.t.Errorf("after the second stop: %v", f)
	}
}
