package powercut

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/store/sqlite/faultdisk"
)

// faultsVariable makes TestDiskFaults fail every operation of the workload in turn; scripts/powercut sets it.
const faultsVariable = "GODWIT_POWERCUT_FAULTS"

// The n-th operation of a kind fails, once or until the disk is mended, for each n of a fixed workload. The server answers 503 with
// Retry-After meanwhile and goes on by itself afterwards: one server lives through all faults of a kind. Nothing acknowledged is lost.
func TestDiskFaults(t *testing.T) {
	slowtest.Needs(t, "some time")
	for _, f := range []faultdisk.Fault{
		{Op: faultdisk.Write, Errno: faultdisk.EIO, Times: 1},
		{Op: faultdisk.Write, Errno: faultdisk.ENOSPC},
		{Op: faultdisk.Sync, Errno: faultdisk.EIO, Times: 1},
		{Op: faultdisk.Sync, Errno: faultdisk.ENOSPC},
		{Errno: faultdisk.EIO, Times: 2}, // also what the server does to recover fails
		{Errno: faultdisk.ENOSPC},
		{Errno: faultdisk.EIO},
	} {
		t.Run(fmt.Sprintf("%s %s %d times", f.Op, f.Errno, f.Times), func(t *testing.T) { failEach(t, f) })
	}
}

// failEach runs the workload with a fault at each operation, until a workload meets none.
func failEach(t *testing.T, f faultdisk.Fault) {
	dir := t.TempDir()
	disk, err := faultdisk.New(dir, rand.New(rand.NewPCG(rand.Uint64(), 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(disk.Close)
	r := newReceiver(t)
	srv := apptest.Start(t, apptest.Options{Data: dir, TuneSQLite: func(o *sqlite.Options) { use(disk, o) }})
	ended := make(chan struct{})
	close(ended)
	c := &client{t: t, http: http.DefaultClient, promise: newAcknowledged(), life: &life{
		greeting: greeting{URL: srv.URL, Tenant: srv.Tenant.String(), Key: srv.Key}, ended: ended,
	}}
	c.promise.tenant = c.life.Tenant
	c.subscribe(r.URL)
	step := int64(7)
	if os.Getenv(faultsVariable) != "" {
		step = 1
	}
	faults, refusals := int64(0), 0
	for f.N = 1; !t.Failed(); f.N += step {
		disk.Break(f)
		refused := c.workload(func() { disk.Mend() })
		failed := disk.Mend()
		faults, refusals = faults+failed, refusals+refused
		if failed == 0 {
			break
		}
	}
	arrive(t, r, c.promise)
	if err := srv.Stop(); err != nil {
		t.Errorf("the server stopped with: %v", err)
	}
	// The check reads the files as the server left them; TestFailedSyncsThenPowerCuts cuts the power.
	if found := c.promise.check(dir, t.TempDir()); len(found) > 0 {
		t.Errorf("%d faults, such as: %v", len(found), errors.Join(found[:min(3, len(found))]...))
	}
	if faults == 0 {
		t.Error("no operation failed: the test shows nothing")
	}
	t.Logf("%d operations failed, up to the %dth of the workload; %d requests were refused and repeated; %d events", faults, f.N, refusals, len(c.promise.events))
}

// workload makes requests of each kind. One that is refused is repeated until it is not; mend is called after the first refusal.
func (c *client) workload(mend func()) (refused int) {
	for _, request := range []func(int) int{c.post, c.post, c.batch, c.manage, c.post, c.submit} {
		for n := 0; !c.t.Failed(); {
			status := request(n)
			if status/100 == 2 {
				break
			}
			if refused++; refused == 1 {
				mend()
			}
		}
	}
	return refused
}

// arrive waits until every acknowledged event was delivered.
func arrive(t *testing.T, r *receiver, a *acknowledged) {
	t.Helper()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for id := range a.events {
		for n := range a.endpoints {
			for !r.has(n, id) && !t.Failed() {
				<-pause.C
			}
		}
	}
}
