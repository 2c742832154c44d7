package powercut

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/store/sqlite/faultdisk"
)

// A plan is a life of the server, from its start to the cut.
type plan struct {
	Data      string // directory of the disk
	Survivors string // empty directory for what survives
	Ring      string
	Seed      uint64
	CutAt     int64 // operation of the disk; 0: when the server has stopped
	Survival  faultdisk.Survival
	WALPages  int64 // small, so that the WAL is copied and begins anew during a life
	Lie       bool
	// FailSyncs makes one sync in so many fail once the server is ready. 0: none.
	FailSyncs int
	// Fault is set before the server starts. If the start fails by it, the process ends with exitFault.
	Fault *faultdisk.Fault
}

// A greeting is the first line that the server's process prints.
type greeting struct {
	URL    string
	Tenant string
	Key    string
	Failed int64 // operations of the disk that failed so far
}

const (
	planVariable = "GODWIT_POWERCUT_PLAN"
	exitCut      = 3
	exitFault    = 4
)

// TestMain runs a life if the process was started for one.
func TestMain(m *testing.M) {
	if text := os.Getenv(planVariable); text != "" {
		var p plan
		err := json.Unmarshal([]byte(text), &p)
		if err == nil {
			err = p.live()
		}
		fmt.Fprintln(os.Stderr, "the server failed:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// live runs the server until the power is cut, which ends the process.
func (p *plan) live() error {
	disk, err := faultdisk.New(p.Data, rand.New(rand.NewPCG(p.Seed, 0)))
	if err != nil {
		return err
	}
	if p.Lie {
		disk.Lie()
	}
	cutAt := p.CutAt
	if cutAt == 0 {
		cutAt = 1 << 60
	}
	disk.CutAt(cutAt, func() {
		if err := disk.SurvivorsAtCut(p.Survivors, p.Survival); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(exitCut)
	})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // to its end: the test asks for a stop, or is gone
		stop()
	}()
	if p.Fault != nil {
		disk.Break(*p.Fault)
	}
	err = p.serve(ctx, disk)
	if p.Fault != nil && errors.Is(err, store.ErrUnavailable) {
		fmt.Fprintln(os.Stderr, "the server failed:", err)
		os.Exit(exitFault)
	}
	if err != nil && p.CutAt != 0 && !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	disk.Cut() // after a stop, which may have failed with the disk
	return err
}

func (p *plan) serve(ctx context.Context, disk *faultdisk.Disk) error {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.Node, cfg.Keyring, cfg.AllowHTTP = "127.0.0.1:0", p.Data, "cut", p.Ring, true
	cfg.Commands.CheckpointEvery = config.Duration(200 * time.Millisecond)
	var loopback config.Network
	if err := loopback.UnmarshalText([]byte("127.0.0.0/8")); err != nil {
		return err
	}
	cfg.AllowAddress = append(cfg.AllowAddress, loopback)
	if err := app.EnsureEvidenceKey(cfg.Data, p.Ring); err != nil {
		return err
	}
	a, err := app.New(ctx, cfg, app.Dependencies{
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), NoLimits: true,
		TuneSQLite: func(o *sqlite.Options) {
			o.WALPages = p.WALPages
			use(disk, o)
		},
	})
	if err != nil {
		return err
	}
	go p.greet(ctx, a, disk)
	return a.Run(ctx)
}

// use lets a store do on the disk what it does beside SQLite.
func use(disk *faultdisk.Disk, o *sqlite.Options) {
	o.SyncDir = func(string) error { return disk.SyncDir() }
	o.OpenFile = func(path string) (sqlite.File, error) { return disk.OpenFile(path) }
}

func (p *plan) greet(ctx context.Context, a *app.App, disk *faultdisk.Disk) {
	select {
	case <-a.Ready():
	case <-ctx.Done():
		return
	}
	g := greeting{URL: a.URL()}
	for {
		err := g.fill(ctx, a)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintln(os.Stderr, "make tenant and key:", err) // and again: a fault may pass
	}
	g.Failed = disk.Mend()
	if p.FailSyncs > 0 {
		disk.Break(faultdisk.Fault{Op: faultdisk.Sync, Odds: p.FailSyncs, Errno: faultdisk.EIO})
	}
	_ = json.NewEncoder(os.Stdout).Encode(g)
}

// fill makes a tenant, unless it exists, and a key.
func (g *greeting) fill(ctx context.Context, a *app.App) error {
	tenant, err := app.TenantByName(ctx, a.Management(), "cut")
	if err != nil {
		return err
	}
	_, token, err := a.Management().Keys.Create(ctx, nil, tenant.ID, management.KeySpec{Name: "cut", Scopes: godwit.AllScopes})
	g.Tenant, g.Key = tenant.ID.String(), token
	return err
}

// A life is a running process.
type life struct {
	greeting
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *tail
	ready  bool          // it greeted before it ended
	ended  chan struct{} // closed when it has ended
}

// begin starts a life and returns once it serves or has ended.
func begin(t *testing.T, p *plan) *life {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	l := &life{cmd: exec.Command(os.Args[0]), stderr: &tail{}, ended: make(chan struct{})}
	l.cmd.Env = append(os.Environ(), planVariable+"="+string(text))
	l.cmd.Stderr = l.stderr
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		l.stdin, err = l.cmd.StdinPipe()
	}
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		if err := json.Unmarshal(line, &l.greeting); err != nil {
			t.Fatalf("greeting %q: %v", line, err)
		}
		l.ready = true
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = l.cmd.Wait()
		close(l.ended)
	}()
	return l
}

// stop asks the server to stop, as SIGTERM does.
func (l *life) stop() { l.stdin.Close() }

// end waits for the end of the process, which must be the cut.
func (l *life) end(t *testing.T) {
	t.Helper()
	<-l.ended
	l.stdin.Close()
	if code := l.cmd.ProcessState.ExitCode(); code != exitCut {
		t.Fatalf("the server ended with %d before the power was cut:\n%s", code, l.stderr)
	}
}
