package browsertest

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/godwit-hq/godwit/internal/slowtest"
)

// A Browser is a chromium of this test alone.
type Browser struct{ ctx context.Context }

// programs are the names of chromium, the first that is found runs.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Start starts a browser. It ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	slowtest.Needs(t, "chromium")
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(find(t)),
		chromedp.Headless,
		chromedp.NoSandbox, // root has none
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1440, 1000),
		chromedp.Env("TZ=UTC", "LANG=en_GB.UTF-8"),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-default-apps", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("metrics-recording-only", true),
		chromedp.Flag("mute-audio", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("lang", "en-GB"),
	)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return &Browser{ctx}
}

func find(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("GODWIT_TEST_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("the tests of the pages need chromium. Debian, Ubuntu: sudo apt-get install chromium; or set GODWIT_TEST_CHROMIUM")
	return ""
}
