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
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A watch collects what goes wrong in a tab, and which requests are under way.
type watch struct {
	origin string

	mu       sync.Mutex
	open     map[network.RequestID]string
	ended    map[network.RequestID]bool
	changed  chan struct{} // closed and replaced when a request ends
	expected []expectation
	answers  []answer
	faults   []string
}

type expectation struct {
	status int64
	path   string
}

type answer struct {
	status int64
	url    string
}

func newWatch(origin string) *watch {
	return &watch{origin: origin, open: map[network.RequestID]string{}, ended: map[network.RequestID]bool{}, changed: make(chan struct{})}
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

// stream reports whether a request has no end.
func stream(url string) bool { return strings.Contains(url, "/v1/attempts/stream") }

// follow begins to listen to the tab, until its context ends.
func (w *watch) follow(ctx context.Context) {
	listen(w, ctx, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) {
		if url := e.Request.URL; !strings.HasPrefix(url, w.origin) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			w.faults = append(w.faults, "the page asked another server: "+url)
		}
		if calls := e.Type == network.ResourceTypeFetch || e.Type == network.ResourceTypeXHR; calls && !w.ended[e.RequestID] && !stream(e.Request.URL) {
			w.open[e.RequestID] = e.Request.URL
		}
	})
	listen(w, ctx, network.ResponseReceived, func(e network.EventResponseReceived) {
		if e.Response.Status > 399 {
			w.answers = append(w.answers, answer{e.Response.Status, e.Response.URL})
		}
	})
	listen(w, ctx, network.LoadingFinished, func(e network.EventLoadingFinished) { w.end(e.RequestID) })
	listen(w, ctx, network.LoadingFailed, func(e network.EventLoadingFailed) {
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" {
			w.faults = append(w.faults, fmt.Sprintf("request to %s failed: %s %s", w.open[e.RequestID], e.ErrorText, e.BlockedReason))
		}
		w.end(e.RequestID)
	})
	listen(w, ctx, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) {
		if kind := string(e.Type); kind == "error" || kind == "warning" || kind == "assert" {
			w.faults = append(w.faults, fmt.Sprintf("console.%s: %s", kind, arguments(e.Args)))
		}
	})
	listen(w, ctx, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) {
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		w.faults = append(w.faults, "exception: "+text)
	})
	listen(w, ctx, log.EntryAdded, func(e log.EventEntryAdded) {
		// Answers above 399 are judged by what the test expects; the browser logs each as an error, too.
		if (e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity) && !strings.HasPrefix(e.Entry.Text, "Failed to load resource: the server responded") {
			w.faults = append(w.faults, fmt.Sprintf("browser's log: %s %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
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
	for _, url := range w.open {
		urls = append(urls, url)
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
