package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a receiver. The defaults are safe; [New] refuses unsafe settings.
type Options struct {
	// Scheme is the sender's dialect, with its secrets. Required.
	Scheme Scheme
	// Handler processes a delivery before it is answered. This or Inbox is required.
	Handler Handler
	// Inbox keeps a delivery for a [Worker], and the sender is answered at once: for handlers that take long (CCW-RCV-7).
	Inbox Enqueuer
	// Store remembers keys and nonces. Defaults to the memory of this process, which forgets at a restart and is full at
	// 1,000,000 of them.
	Store Store
	// Dedup configures deduplication. Defaults to on.
	Dedup Dedup
	// Freshness configures the check of the signed time. Defaults to on, where a time is signed.
	Freshness Freshness
	// Key is the format of Idempotency-Key, for the schemes that use it. Defaults to 16 to 255 characters in quotes.
	Key KeyPolicy
	// Transactional runs the handler in the store's transaction, which also completes the key: what it writes with the
	// store's package happens exactly once. Needs a store that is a [Transactor]. Defaults to false.
	Transactional bool
	// MaxBody is the largest body in bytes. Defaults to 1 MiB.
	MaxBody int64
	// Timeout limits a handler's run time. Defaults to 25 seconds.
	Timeout time.Duration
	// StoreTimeout limits an operation of the store. Defaults to 5 seconds.
	StoreTimeout time.Duration
	// PurgeEvery is how often the store is purged, in small steps beside the requests. If it is negative, call [Receiver.Purge]
	// instead. Defaults to 1 minute.
	PurgeEvery time.Duration
	// RetryAfter is the wait that senders are told by default. Defaults to 1 second.
	RetryAfter time.Duration
	// API answers a repeat of a request in progress with 409, as APIs do. Webhook senders would give up on it and get 503.
	// Defaults to false.
	API bool
	// PublicOrigin is the scheme and host that senders use, if a proxy changes them, as in "https://hooks.example.com".
	// Defaults to those of each request.
	PublicOrigin string
	// TargetURI returns the whole address that the sender used, if a proxy changes more than the origin. Defaults to
	// PublicOrigin with the path and query of the request.
	TargetURI func(*http.Request) string
	// AllowHTTP accepts deliveries whose credentials travel unencrypted ([Bearer], [Basic]). Defaults to false.
	AllowHTTP bool
	// DocsPath is the path of the page that states the policy. Route it to the receiver as well. Defaults to /docs/idempotency.
	DocsPath string
	// DocsURL is the public address of that page. Defaults to PublicOrigin with DocsPath.
	DocsURL string
	// Validate checks a payload before the handler runs. The sender gets a 400 with the text of its error (CCW-RCV-15).
	// Defaults to none.
	Validate func(*Delivery) error
	// MultiStatusAgreement refers to the agreement that lets a handler answer 207 (EDS-STA-207b). Defaults to none.
	MultiStatusAgreement string
	// EarlyData reports whether a request came as TLS early data, if the server knows. The header Early-Data is read in any
	// case. Defaults to none.
	EarlyData func(*http.Request) bool
	// ClientIP returns the sender's address for logs. Defaults to the address of the connection.
	ClientIP func(*http.Request) string
	// Hooks are called with what happens.
	Hooks Hooks
	// Log receives failures. Payloads and secrets are never logged. Defaults to [slog.Default].
	Log *slog.Logger
	// Clock returns the time. Defaults to [time.Now].
	Clock func() time.Time
}

// Dedup configures the deduplication of deliveries.
type Dedup struct {
	// Off turns deduplication off. Freshness must then be on, and handlers must cope with duplicates. OJS and CYBERCUBE do not
	// allow it.
	Off bool
	// Window is how long a key is remembered after its request was completed. Defaults to 30 days; at least 24 hours, for
	// CYBERCUBE 7 days.
	Window time.Duration
	// Agreement refers to the agreement that allows a shorter window.
	Agreement string
	// Lease is how long a handler may hold a key. It must be longer than Timeout. Defaults to 60 seconds, for CYBERCUBE 5
	// minutes; or twice Timeout if that is longer.
	Lease time.Duration
	// Fingerprint covers the parts that a sender must not change under one key. Defaults to media type and body.
	Fingerprint func(*Delivery) Digest
	// NoFingerprint turns the comparison off: a repeat is known by its key alone. Defaults to the scheme's own value, which is
	// true for Stripe only.
	NoFingerprint bool
	// AcceptedOnly does not keep rejections, so that a sender may retry after a handler was fixed. Defaults to false.
	AcceptedOnly bool
}

// Freshness configures the check of the time that a sender signs.
type Freshness struct {
	// Off turns the check off. Deduplication must then be on.
	Off bool
	// Tolerance is the largest age and lead of a signed time. NoTolerance allows none. Defaults to 300 seconds.
	Tolerance time.Duration
}

// NoTolerance is a tolerance of 0 seconds.
const NoTolerance time.Duration = -1

// An Enqueuer stores a delivery for later. It returns when the delivery is durable.
type Enqueuer interface {
	Enqueue(ctx context.Context, j Job) error
}

// Receiver serves deliveries. It may be used concurrently, and several may share a store.
type Receiver struct {
	o         Options
	profile   Profile
	store     Store
	txStore   Transactor // nil unless transactional
	inMemory  bool
	tolerance time.Duration
	window    time.Duration
	lease     time.Duration
	docsURL   string
	log       *slog.Logger

	running sync.WaitGroup // handlers, also those past their time limit, and purges
	purged  atomic.Int64   // when the last purge began, in Unix nanoseconds
	purging atomic.Bool

	mu       sync.Mutex
	failures recent
}

// New makes a receiver. It fails if the options are not safe.
func New(o Options) (*Receiver, error) {
	if o.Scheme == nil {
		return nil, errors.New("make receiver: no scheme; set Options.Scheme") // EDS-KEY-7
	}
	if (o.Handler == nil) == (o.Inbox == nil) {
		return nil, errors.New("make receiver: set either Options.Handler or Options.Inbox")
	}
	profile, err := o.Scheme.Profile()
	if err == nil {
		err = profile.check()
	}
	if err != nil {
		return nil, fmt.Errorf("make receiver: %w", err)
	}
	r := &Receiver{profile: profile.withDefaults()}
	for _, step := range []func(*Options) error{r.setDefaults, r.setReplay, r.setDedup, r.setAddresses} {
		if err := step(&o); err != nil {
			return nil, fmt.Errorf("make receiver: %w", err)
		}
	}
	r.o, r.log = o, o.Log
	r.purged.Store(o.Clock().UnixNano())
	r.warn()
	return r, nil
}

func (r *Receiver) setDefaults(o *Options) error {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&o.Timeout, 25 * time.Second}, {&o.StoreTimeout, 5 * time.Second}, {&o.RetryAfter, time.Second}, {&o.PurgeEvery, time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	if o.MaxBody < 0 || o.Timeout < 0 || o.StoreTimeout < 0 || o.RetryAfter < 0 {
		return errors.New("a limit is negative")
	}
	o.Key = o.Key.withDefaults()
	if o.Key.Min < 1 || o.Key.Max < o.Key.Min || o.Key.Max > 1024 {
		return errors.New("a key has 1 to 1024 characters")
	}
	if r.store = o.Store; r.store == nil {
		r.store = NewMemory(MemoryOptions{})
	}
	_, r.inMemory = r.store.(*Memory)
	if o.Transactional {
		store, ok := r.store.(Transactor)
		if !ok {
			return errors.New("the store has no transactions; unset Transactional or use another store")
		}
		if o.Inbox != nil {
			return errors.New("an inbox has no handler to run in a transaction: make the worker transactional")
		}
		r.txStore = store
	}
	return nil
}

// setReplay makes sure that replays are recognised (EDS-SEC-RPL-2).
func (r *Receiver) setReplay(o *Options) error {
	if o.Dedup.Off && r.profile.AlwaysDedup {
		return fmt.Errorf("%s is always deduplicated", r.profile.Name)
	}
	if o.Dedup.Off && o.Transactional {
		return errors.New("option Transactional needs deduplication; set Dedup.Off to false")
	}
	r.tolerance = o.Freshness.Tolerance
	switch {
	case o.Freshness.Off || !r.profile.SignsTime:
		r.tolerance = -1
	case r.tolerance == 0:
		r.tolerance = 300 * time.Second
	case r.tolerance == NoTolerance:
		r.tolerance = 0
	case r.tolerance < 0:
		return errors.New("the tolerance is negative")
	}
	if o.Dedup.Off && r.tolerance < 0 {
		return errors.New("without deduplication the scheme must sign a time; otherwise a captured request could be replayed for ever")
	}
	return nil
}

func (r *Receiver) setDedup(o *Options) error {
	d := &o.Dedup
	if d.NoFingerprint = d.NoFingerprint || r.profile.NoFingerprint && d.Fingerprint == nil; d.NoFingerprint && d.Fingerprint != nil {
		return errors.New("Dedup.Fingerprint and Dedup.NoFingerprint exclude each other; remove one")
	}
	if d.Fingerprint == nil {
		d.Fingerprint = func(d *Delivery) Digest { return FingerprintOf(d.ContentType, d.Body) }
	}
	if r.window = d.Window; r.window == 0 {
		r.window = 30 * 24 * time.Hour
	}
	if r.window < r.profile.WindowFloor && d.Agreement == "" || r.window < 0 {
		return fmt.Errorf("the window is below %s, the least for %s; name the agreement that allows it", r.profile.WindowFloor, r.profile.Name)
	}
	if r.lease = d.Lease; r.lease == 0 {
		r.lease = max(r.profile.Lease, 2*o.Timeout)
	}
	if r.lease <= o.Timeout {
		return errors.New("the lease must be longer than the timeout; otherwise a key is free while its handler still runs")
	}
	return nil
}

func (r *Receiver) setAddresses(o *Options) error {
	if o.DocsPath == "" {
		o.DocsPath = "/docs/idempotency"
	}
	if o.PublicOrigin != "" {
		origin, err := parseOrigin(o.PublicOrigin)
		if err != nil {
			return err
		}
		o.PublicOrigin = origin
	}
	if o.TargetURI == nil {
		o.TargetURI = targetURI
		if origin := o.PublicOrigin; origin != "" {
			o.TargetURI = func(r *http.Request) string { return origin + requestTarget(r) }
		}
	}
	if r.docsURL = o.DocsURL; r.docsURL == "" {
		r.docsURL = o.PublicOrigin + o.DocsPath
	}
	return nil
}

func (r *Receiver) warn() {
	var warnings []string
	if r.tolerance < 0 {
		warnings = append(warnings, "deduplication is the only defence against replays: none is recognised after the window") // EDS-SEC-RPL-5
	}
	if r.o.Store == nil {
		warnings = append(warnings, "keys are remembered in this process alone: give a store if there are several, or if it may restart")
	}
	for _, w := range warnings {
		r.log.Warn("webhook receiver: "+w, "scheme", r.profile.Name)
		if hook := r.o.Hooks.OnWarning; hook != nil {
			tell(func() { hook(w) })
		}
	}
}
