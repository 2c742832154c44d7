package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// waitLimit bounds a wait. It affects no result: a passing test never reaches it.
const waitLimit = 5 * time.Minute

// A Page is a tab.
type Page struct {
	t    testing.TB
	ctx  context.Context
	base string // scheme, host and port
	seen *watch
}

// Open opens an address in a tab of its own, with cookies of its own, and waits until it shows something. The page may ask the others, which are
// origins, besides its own server.
func (b *Browser) Open(t testing.TB, address string, others ...string) *Page {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	p := &Page{t: t, ctx: ctx, base: u.Scheme + "://" + u.Host, seen: newWatch(append(others, u.Scheme+"://"+u.Host)...)}
	if err := chromedp.Do(ctx); err != nil { // opens the tab
		t.Fatalf("open tab: %v", err)
	}
	p.watch(t)
	p.Size(1440, 1000)
	p.Load(address)
	return p
}

// watch begins to notice what goes wrong in the page; at the end of the test it is reported.
func (p *Page) watch(t testing.TB) {
	t.Helper()
	p.seen.follow(p.ctx)
	for _, err := range []error{
		call(p.ctx, network.Enable, network.EnableParams{}), call(p.ctx, log.Enable, cdp.Empty{}), call(p.ctx, runtime.Enable, cdp.Empty{}),
	} {
		if err != nil {
			t.Fatalf("open tab: %v", err)
		}
	}
	t.Cleanup(func() {
		for _, fault := range p.seen.Faults() {
			t.Error(fault)
		}
	})
}

// Frame returns the frame of another site whose address begins so. It must have loaded.
func (p *Page) Frame(t testing.TB, address string) *Page {
	t.Helper()
	all, err := chromedp.Targets(p.ctx)
	if err != nil {
		t.Fatalf("list frames: %v", err)
	}
	for _, info := range all {
		if info.Type != "iframe" || !strings.HasPrefix(info.URL, address) {
			continue
		}
		u, err := url.Parse(info.URL)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := chromedp.NewContext(p.ctx, chromedp.WithTargetID(info.TargetID))
		t.Cleanup(end)
		f := &Page{t: t, ctx: ctx, base: u.Scheme + "://" + u.Host, seen: newWatch(u.Scheme + "://" + u.Host)}
		if err := chromedp.Do(ctx); err != nil {
			t.Fatalf("attach to frame: %v", err)
		}
		f.watch(t)
		return f
	}
	t.Fatalf("there is no frame %s; the page shows: %s", address, p.peek())
	return nil
}

// AwaitFault waits until the browser says something that contains the text, which then is no fault.
func (p *Page) AwaitFault(text string) {
	p.t.Helper()
	if !p.seen.awaitFault(text, waitLimit) {
		p.t.Fatalf("page %s: the browser did not say %q, only %q", p.Address(), text, p.seen.Faults())
	}
}

// For returns the same page for a subtest.
func (p *Page) For(t testing.TB) *Page {
	page := *p
	page.t = t
	return &page
}

// Expect says that the page may get answers with this status from paths that contain the text, as when it asks whether a session is there.
func (p *Page) Expect(status int64, path string) { p.seen.expect(status, path) }

func call[P, R any](ctx context.Context, command cdp.Command[P, R], parameters P) error {
	_, err := chromedp.Call(ctx, command, parameters)
	return err
}

// run runs an action of a page and returns its result.
func run[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("page %s: %v\nit shows: %s", p.Address(), err, p.peek())
	}
	return result
}

// peek returns the beginning of the text that the page shows, for messages.
func (p *Page) peek() string {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
	if err != nil {
		return err.Error()
	}
	return text[:min(len(text), 1500)]
}

// Address returns the address of the page.
func (p *Page) Address() string {
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	address, err := chromedp.Run(ctx, chromedp.Location())
	if err != nil {
		return err.Error()
	}
	return address
}

// Load loads an address as typing it does, and waits until the page has what it shows.
func (p *Page) Load(address string) {
	p.t.Helper()
	run(p, chromedp.Navigate(address))
	p.Settle()
}

// Go goes to a path within the app, as a click on a link does.
func (p *Page) Go(path string) {
	p.t.Helper()
	p.Do(fmt.Sprintf(`history.pushState(null, "", %s); dispatchEvent(new PopStateEvent("popstate"))`, quote(path)))
	p.Settle()
}

// Settle waits until the page shows no sign of loading and all of its requests but streams were answered.
func (p *Page) Settle() {
	p.t.Helper()
	for {
		p.Wait(`document.querySelector("h1") !== null && document.querySelector("[data-loading], [aria-busy=true]") === null`)
		if p.seen.idle() {
			return
		}
		if !p.seen.awaitIdle(waitLimit) {
			p.t.Fatalf("page %s waits for %v\nit shows: %s", p.Address(), p.seen.waiting(), p.peek())
		}
	}
}

// Wait waits until an expression is true. It is looked at with every change of the page.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	run(p, chromedp.Evaluate[bool](`new Promise((resolve) => {
		const holds = () => { try { return Boolean(`+expression+`) } catch { return false } };
		if (holds()) return resolve(true);
		const look = () => { if (!holds()) return; observer.disconnect(); clearInterval(timer); resolve(true) };
		const observer = new MutationObserver(look);
		observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
		const timer = setInterval(look, 50); // for what changes no element, such as the address
	})`, chromedp.EvalAwaitPromise))
}

// WaitText waits until the page shows the text.
func (p *Page) WaitText(text string) {
	p.t.Helper()
	p.Wait(`document.body.innerText.includes(` + quote(text) + `)`)
}

// Do evaluates statements.
func (p *Page) Do(statements string) {
	p.t.Helper()
	run(p, chromedp.Evaluate[chromedp.Void](`{`+statements+`}; undefined`))
}

// Value evaluates an expression, which may be a promise.
func Value[T any](p *Page, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Text returns the text that the page shows.
func (p *Page) Text() string {
	p.t.Helper()
	return Value[string](p, `document.body.innerText`)
}

// Fill types a text into the field with this label.
func (p *Page) Fill(label, text string) {
	p.t.Helper()
	p.Do(field(label) + fmt.Sprintf(`
		control.focus();
		const kind = control instanceof HTMLTextAreaElement ? HTMLTextAreaElement : control instanceof HTMLSelectElement ? HTMLSelectElement : HTMLInputElement;
		Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(control, %s);
		control.dispatchEvent(new Event("input", { bubbles: true }));
		control.dispatchEvent(new Event("change", { bubbles: true }));`, quote(text)))
}

// Type presses keys in the field that has the focus, or on the page.
func (p *Page) Type(keys string) {
	p.t.Helper()
	run(p, chromedp.KeyEvent(keys))
}

// Click clicks the button or link with this text or label, once it is there and enabled.
func (p *Page) Click(text string) {
	p.t.Helper()
	p.Wait(clickable(text) + ` !== undefined`)
	p.Do(clickable(text) + `.click()`)
}

// Within open dialogs nothing behind them can be clicked.
func clickable(text string) string {
	return `[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button, a[href], summary, input[type=checkbox], input[type=radio]")]
		.find((e) => !e.disabled && e.getClientRects().length > 0 && [e.innerText?.trim(), e.getAttribute("aria-label"), e.labels?.[0]?.innerText.trim()].includes(` + quote(text) + `))`
}

func field(label string) string {
	return `const root = document.querySelector("dialog[open]") ?? document;
		const found = [...root.querySelectorAll("label")].find((l) => (l.querySelector("span") ?? l).innerText.trim() === ` + quote(label) + `);
		const control = found?.control ?? [...root.querySelectorAll("input, textarea, select")].find((e) => e.getAttribute("aria-label") === ` + quote(label) + `);
		if (!control) throw new Error("no field " + ` + quote(label) + `);`
}

// SignIn signs in with a key on the page for it.
func (p *Page) SignIn(key string) {
	p.t.Helper()
	p.Fill("API key", key)
	p.Click("Sign in")
	p.Wait(`document.querySelector("nav") !== null`)
	p.Settle()
}

// Size sets the size of the screen.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	run(p, chromedp.EmulateViewport(width, height))
}

// Scheme sets the system's theme: light or dark.
func (p *Page) Scheme(scheme string) {
	p.t.Helper()
	err := call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		p.t.Fatalf("set theme: %v", err)
	}
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return strings.ReplaceAll(string(text), "\u2028", `\u2028`)
}
