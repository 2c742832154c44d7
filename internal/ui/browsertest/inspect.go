package browsertest

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

//go:embed third_party/axe.min.js
var axe string

// Widths are those of a phone and of a desk.
var Widths = []int64{375, 1440}

// Inspect looks at the page in both themes and at two widths. name is that of its pictures.
func (p *Page) Inspect(name string) {
	p.t.Helper()
	if !Value[bool](p, `typeof axe === "object"`) {
		run(p, chromedp.Evaluate[chromedp.Void](axe+"; undefined"))
	}
	for _, width := range Widths {
		p.Size(width, 900)
		for _, scheme := range []string{"light", "dark"} {
			p.Scheme(scheme)
			look := fmt.Sprintf("%s at %d px, %s", name, width, scheme)
			if scheme == "light" {
				p.layout(look)
			}
			if (scheme == "light") == (width == Widths[0]) { // each theme and each width once
				p.axe(look)
			}
			p.Picture(fmt.Sprintf("%s-%d-%s", name, width, scheme))
		}
	}
	p.Size(1440, 1000)
	p.Scheme("light")
}

// layout finds pages that are empty, wider than the screen, or cut off text.
func (p *Page) layout(look string) {
	p.t.Helper()
	type layout struct {
		Text  int
		Wide  int
		Width int
		Clips []string
	}
	found := Value[layout](p, `(() => {
		const clips = [];
		const width = document.documentElement.clientWidth;
		for (const e of document.querySelectorAll("main *, header *, dialog[open] *")) {
			if (e.closest(".hidden-text, svg, .skip") || e.getClientRects().length === 0) continue;
			const style = getComputedStyle(e);
			if (style.clipPath !== "none" || style.position === "fixed") continue;
			const box = e.getBoundingClientRect();
			const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== "");
			if (own && (box.right > width + 1 || box.left < -1) && !e.closest("thead, .skip")) clips.push(e.outerHTML.slice(0, 160) + " ends at " + Math.round(box.right));
			if (own && style.overflowX === "hidden" && e.scrollWidth > e.clientWidth + 1) clips.push("cut off: " + e.outerHTML.slice(0, 160));
		}
		return { Text: document.body.innerText.trim().length, Wide: document.documentElement.scrollWidth, Width: width, Clips: clips.slice(0, 5) };
	})()`)
	if found.Text < 40 {
		p.t.Errorf("%s is empty: %s", look, p.peek())
	}
	if found.Wide > found.Width {
		p.t.Errorf("%s is %d px wide on a screen of %d", look, found.Wide, found.Width)
	}
	for _, clip := range found.Clips {
		p.t.Errorf("%s does not show all of its text: %s", look, clip)
	}
}

// axe reports what axe-core finds.
func (p *Page) axe(look string) {
	p.t.Helper()
	findings := Value[[]string](p, `axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then((r) =>
		r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 3).map((n) => "    " + n.html.slice(0, 300) + "\n      " + n.failureSummary.replaceAll("\n", " ")).join("\n")))`)
	if len(findings) > 0 {
		p.t.Errorf("%s: axe-core finds\n  %s", look, strings.Join(findings, "\n  "))
	}
}

// Picture keeps a picture of the whole page, if a folder for it is given.
func (p *Page) Picture(name string) {
	p.t.Helper()
	folder := os.Getenv("GODWIT_SCREENSHOTS")
	if folder == "" {
		return
	}
	whole := true
	shot, err := chromedp.Call(p.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole})
	if err != nil {
		p.t.Fatalf("take picture: %v", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), shot.Data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
