package crashtest

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// runGodwit runs a command of the binary beside the server.
func runGodwit(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	out, err := exec.Command(apptest.Binary(t), args...).CombinedOutput()
	return string(out), err
}

// A backup is written while producers post. Restored elsewhere, it has everything that was acknowledged before it began, and the new
// server delivers what was pending.
func TestBackupUnderLoad(t *testing.T) {
	r, later := newReceiver(t), newReceiver(t)
	data, elsewhere, into := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "backup")
	p := apptest.StartProcess(t, apptest.ProcessOptions{Data: data})
	subscribe(t, p, r.URL)
	paused := subscribe(t, p, later.URL)
	setStatus(t, p, p.Key, paused, "pause")

	ps := produce(t, p, 8)
	ps.more(300)
	before := ps.known()
	if out, err := runGodwit(t, "backup", "--data", data, into); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	ps.more(50) // the server goes on
	if out, err := runGodwit(t, "restore", "--data", data, "--force", into); err == nil || !strings.Contains(out, "in use by process") {
		t.Errorf("restored under a running server: %v\n%s", err, out)
	}
	all := ps.end()
	p.Kill()
	if out, err := runGodwit(t, "restore", "--data", elsewhere, into); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}

	restored := apptest.StartProcess(t, apptest.ProcessOptions{Data: elsewhere})
	setStatus(t, restored, p.Key, paused, "resume") // the key of the first server is in the backup
	later.await(t, before)
	r.await(t, before)
	t.Logf("%d of %d events were acknowledged before the backup began; the restored server had %d", len(before), len(all), len(later.lives()))
}

// setStatus pauses or resumes an endpoint, with a key.
func setStatus(t *testing.T, p *apptest.Process, key, endpoint, action string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.URL+"/v1/endpoints/"+endpoint+"/"+action, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s endpoint: %d", action, resp.StatusCode)
	}
}

// known returns the keys that were acknowledged so far.
func (ps *producers) known() []string {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return slices.Clone(ps.keys)
}
