package browsertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A watch collects what goes wrong in a tab, and which requests are under way.
type watch struct {
	origins []string

	mu       sync.Mutex
	open     map[network.RequestID]request
	ended    map[network.RequestID]bool
	shown    map[cdp.FrameID]cdp.LoaderID // the document of each frame
	left     map[cdp.LoaderID]bool        // documents that a frame showed before
	changed  chan struct{}                // closed and replaced when a request ends
	expected []expectation
	answers  []answer
	faults   []string
	said     chan struct{} // closed and replaced when there is another fault
}

// A request is made by a document.
type request struct {
	url      string
	document cdp.LoaderID
}

type expectation struct {
	status int64
	path   string
}

type answer struct {
	status int64
	url    string
}

func newWatch(origins ...string) *watch {
	return &watch{origins: origins, said: make(chan struct{}), open: map[network.RequestID]request{}, ended: map[network.RequestID]bool{}, shown: map[cdp.FrameID]cdp.LoaderID{}, left: map[cdp.LoaderID]bool{}, changed: make(chan struct{})}
}

func (w *watch) expect(status int64, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected = append(w.expected, expectation{status, path})
}

// Faults lists what went wrong.
func (w *watch) Faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.faults)
	for _, a := range w.answers {
		if !slices.ContainsFunc(w.expected, func(e expectation) bool { return e.status == a.status && strings.Contains(a.url, e.path) }) {
			list = append(list, fmt.Sprintf("the page got %d from %s", a.status, a.url))
		}
	}
	return list
}

func (w *watch) own(url string) bool {
	return slices.ContainsFunc(w.origins, func(origin string) bool { return url == origin || strings.HasPrefix(url, origin+"/") })
}

func (w *watch) fault(text string) {
	w.faults = append(w.faults, text)
	close(w.said)
	w.said = make(chan struct{})
}

// awaitFault waits for a fault that contains the text, and forgets it.
func (w *watch) awaitFault(text string, limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		w.mu.Lock()
		before := len(w.faults)
		w.faults = slices.DeleteFunc(w.faults, func(f string) bool { return strings.Contains(f, text) })
		found, said := len(w.faults) < before, w.said
		w.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-said:
		case <-late.C:
			return false
		}
	}
}

// stream reports whether a request has no end.
func stream(url string) bool { return strings.Contains(url, "/v1/attempts/stream") }

// follow begins to listen to the tab, until its context ends.
func (w *watch) follow(ctx context.Context) {
	listen(w, ctx, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) {
		if url := e.Request.URL; !w.own(url) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			w.fault("the page asked another server: " + url)
		}
		if calls := e.Type == network.ResourceTypeFetch || e.Type == network.ResourceTypeXHR; calls && !w.ended[e.RequestID] && !w.left[e.LoaderID] && !stream(e.Request.URL) {
			w.open[e.RequestID] = request{e.Request.URL, e.LoaderID}
		}
	})
	listen(w, ctx, network.ResponseReceived, func(e network.EventResponseReceived) {
		if e.Response.Status > 399 {
			w.answers = append(w.answers, answer{e.Response.Status, e.Response.URL})
		}
	})
	listen(w, ctx, network.LoadingFinished, func(e network.EventLoadingFinished) { w.end(e.RequestID) })
	listen(w, ctx, network.LoadingFailed, func(e network.EventLoadingFailed) {
		// The tools of the browser look into its cache by themselves when they are attached to a frame.
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" && e.ErrorText != "net::ERR_CACHE_MISS" {
			w.fault(fmt.Sprintf("request to %s failed: %s %s", w.open[e.RequestID].url, e.ErrorText, e.BlockedReason))
		}
		w.end(e.RequestID)
	})
	// The requests of a document end with it, and the browser does not always tell.
	listen(w, ctx, page.FrameNavigated, func(e page.EventFrameNavigated) {
		if before := w.shown[e.Frame.ID]; before != "" && before != e.Frame.LoaderID {
			w.left[before] = true
		}
		w.shown[e.Frame.ID] = e.Frame.LoaderID
		for id, r := range w.open {
			if w.left[r.document] {
				w.end(id)
			}
		}
	})
	listen(w, ctx, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) {
		if kind := string(e.Type); kind == "error" || kind == "warning" || kind == "assert" {
			w.fault(fmt.Sprintf("console.%s: %s", kind, arguments(e.Args)))
		}
	})
	listen(w, ctx, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) {
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		w.fault("exception: " + text)
	})
	listen(w, ctx, log.EntryAdded, func(e log.EventEntryAdded) {
		// Answers above 399 are judged by what the test expects; the browser logs each as an error, too.
		if (e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity) && !strings.HasPrefix(e.Entry.Text, "Failed to load resource: the server responded") {
			w.fault(fmt.Sprintf("browser's log: %s %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	})
}

// listen calls f for each event. Events of different kinds may come in another order than they happened.
func listen[E any](w *watch, ctx context.Context, kind cdp.Event[E], f func(E)) {
	events := chromedp.Events(ctx, kind)
	go func() {
		for e, err := range events {
			if err != nil {
				return // the tab is closed
			}
			w.mu.Lock()
			f(e)
			w.mu.Unlock()
		}
	}()
}

func arguments(list []*runtime.RemoteObject) string {
	var parts []string
	for _, a := range list {
		if len(a.Value) > 0 {
			parts = append(parts, string(a.Value))
		} else {
			parts = append(parts, a.Description)
		}
	}
	return strings.Join(parts, " ")
}

func (w *watch) end(id network.RequestID) {
	delete(w.open, id)
	w.ended[id] = true
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watch) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open) == 0
}

func (w *watch) waiting() (urls []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.open {
		urls = append(urls, r.url)
	}
	return urls
}

// awaitIdle waits until no request is under way.
func (w *watch) awaitIdle(limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		w.mu.Lock()
		open, changed := len(w.open), w.changed
		w.mu.Unlock()
		if open == 0 {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}
