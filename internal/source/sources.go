package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Config holds the dependencies and settings of Sources.
type Config struct {
	Store store.Sources
	Ring  *keyring.Ring
	Log   *slog.Logger
	Now   func() time.Time
	// Terms are the promises of the running service. Required.
	Terms Terms
	// ClientCertificates says that the server requests client certificates, which sources of the scheme mtls need. Defaults
	// to false.
	ClientCertificates bool
	// TimeScale speeds up the overlap of rotations. Defaults to real time.
	TimeScale godwit.TimeScale
	// Limit bounds the sources of a tenant. Defaults to godwit.MaxSourcesOfOne.
	Limit int
}

// Sources manages sources. It is safe for concurrent use.
type Sources struct {
	cfg      Config
	gates    gates
	receipts receipts
}

// New makes Sources.
func New(cfg Config) (*Sources, error) {
	if cfg.Store == nil || cfg.Ring == nil || cfg.Log == nil || cfg.Now == nil || cfg.Terms.Durability == "" {
		return nil, errors.New("sources: store, ring, log, now and terms are required")
	}
	if cfg.Limit == 0 {
		cfg.Limit = godwit.MaxSourcesOfOne
	}
	return &Sources{cfg: cfg, gates: gates{byID: map[godwit.SourceID]*Gate{}}}, nil
}

// now has the precision of the stores, so that a response shows the same time as later reads.
func (s *Sources) now() time.Time { return s.cfg.Now().Truncate(time.Microsecond) }

// Terms returns the promises of the running service.
func (s *Sources) Terms() *Terms { return &s.cfg.Terms }

// Issued is a new credential with its secret, which is shown only once. The secret is empty if the caller supplied it.
type Issued struct {
	ID     string
	Secret string
}

// A Permit allows a change of a source that submits commands, or refuses it with an error, before the change is stored. Before
// is nil when the source is created.
type Permit func(before, after *godwit.Source) error

// allow asks for a permit where the source submits commands, or did before. A nil permit refuses.
func (p Permit) allow(before, after *godwit.Source) error {
	if after.Settings.CommandsAs == "" && (before == nil || before.Settings.CommandsAs == "") {
		return nil
	}
	if p == nil {
		return fieldError("settings.commands_as", "cannot be set here")
	}
	return p(before, after)
}

// A created source, with the credential that was made for it; nil if the caller brought its own.
type created struct {
	source *godwit.Source
	issued *Issued
}

// Create registers an upstream. If the request has no credentials, Create generates one, in schemes that allow it.
func (s *Sources) Create(ctx context.Context, tenant godwit.TenantID, spec Spec, permit Permit) (*godwit.Source, *Issued, error) {
	spec.setDefaults()
	if err := s.check(&spec); err != nil {
		return nil, nil, err
	}
	c, err := idempotency.Once(ctx, s.now(),
		func(id godwit.SourceID) (*created, error) { return s.find(ctx, tenant, id, len(spec.Credentials) == 0) },
		func(id godwit.SourceID) (*created, error) { return s.create(ctx, tenant, id, &spec, permit) })
	if errors.Is(err, store.ErrConflict) {
		return nil, nil, nameTaken("create source", err)
	}
	if err != nil {
		return nil, nil, err
	}
	return c.source, c.issued, nil
}

func (s *Sources) create(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, spec *Spec, permit Permit) (*created, error) {
	n, err := s.cfg.Store.CountSources(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("count sources: %w", err)
	}
	if n >= s.cfg.Limit {
		return nil, problem.LimitReached.With("the tenant has %d sources and may have no more than %d", n, s.cfg.Limit)
	}
	now := s.now()
	src := &godwit.Source{ID: id, TenantID: tenant, Scheme: spec.Scheme, Status: godwit.SourceActive, CreatedAt: now, UpdatedAt: now, Version: 1}
	spec.lay(src)
	credentials, issued, err := s.credentials(ctx, spec, now)
	if err != nil {
		return nil, err
	}
	if err := s.seal(src, credentials, now); err != nil {
		return nil, err
	}
	if err := permit.allow(nil, src); err != nil {
		return nil, err
	}
	if err := s.cfg.Store.CreateSource(ctx, src); err != nil {
		return nil, fmt.Errorf("create source: %w", err)
	}
	return &created{src, issued}, nil
}

// find returns the source that an interrupted request created. If its credential was made for it, find opens it.
func (s *Sources) find(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, minted bool) (*created, error) {
	src, err := s.cfg.Store.Source(ctx, tenant, id)
	if err != nil || !minted {
		return &created{source: src}, err
	}
	list, err := s.open(src)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return &created{source: src}, nil
	}
	first := list[len(list)-1] // rotations put newer ones in front
	return &created{src, &Issued{ID: first.ID, Secret: first.Secret}}, nil
}

func nameTaken(doing string, err error) error {
	if errors.Is(err, store.ErrConflict) {
		return problem.Conflict.With("the tenant has a source of this name, or the source changed under way")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// credentials returns the given credentials, or a new one.
func (s *Sources) credentials(ctx context.Context, spec *Spec, now time.Time) ([]godwit.Credential, *Issued, error) {
	sch := schemeNamed(spec.Scheme)
	if len(spec.Credentials) > 0 {
		list := slices.Clone(spec.Credentials)
		for i := range list {
			list[i].CreatedAt, list[i].ExpiresAt = now, time.Time{}
			if list[i].ID == "" && !sch.named {
				list[i].ID = credentialID(ctx, now, i)
			}
			if why := sch.check(&list[i]); why != "" {
				return nil, nil, fieldError(fmt.Sprintf("credentials[%d]", i), "%s", why)
			}
		}
		return list, nil, nil
	}
	if sch.mint == nil {
		return nil, nil, fieldError("credentials", "must be given: this upstream makes its secret or key itself")
	}
	c := godwit.Credential{ID: credentialID(ctx, now, 0), Secret: sch.mint(), CreatedAt: now}
	return []godwit.Credential{c}, &Issued{ID: c.ID, Secret: c.Secret}, nil
}

// credentialID returns the id of the request's nth credential. It follows from the request's Idempotency-Key, if there is one.
func credentialID(ctx context.Context, now time.Time, nth int) string {
	return idempotency.ID(ctx, godwit.NewSecretID(now), nth).String()
}

// seal encrypts and stores the valid credentials in the source, after it checked that the scheme can use them.
func (s *Sources) seal(src *godwit.Source, list []godwit.Credential, now time.Time) error {
	sch := schemeNamed(src.Scheme)
	if sch == nil {
		return errNoScheme
	}
	var live []godwit.Credential
	src.Credentials = nil
	seen := map[string]bool{}
	for i := range list {
		c := &list[i]
		if !c.LiveAt(now) {
			continue
		}
		name := c.ID
		if sch.passwords {
			name += "\x00" + c.Secret
		}
		if seen[name] {
			return fieldError("credentials", "has the id %q twice", c.ID)
		}
		seen[name] = true
		live = append(live, *c)
		info := godwit.CredentialInfo{ID: c.ID, PublicKey: c.PublicKey, CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt}
		if len(c.Secret) >= 16 {
			info.Hint = c.Secret[len(c.Secret)-4:]
		}
		src.Credentials = append(src.Credentials, info)
	}
	if len(live) > godwit.MaxCredentials {
		return problem.LimitReached.With("a source has at most %d credentials that are good; let some run out", godwit.MaxCredentials)
	}
	if _, err := sch.prepare(src, live); err != nil {
		return fieldError("credentials", "%s", err) // names the credential, never its value
	}
	plain, err := json.Marshal(live)
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	src.Sealed = s.cfg.Ring.Seal(plain, keyring.ForSource(src.ID))
	return nil
}

func (s *Sources) open(src *godwit.Source) ([]godwit.Credential, error) {
	plain, err := s.cfg.Ring.Open(src.Sealed, keyring.ForSource(src.ID))
	if err != nil {
		return nil, fmt.Errorf("open credentials of source %s: %w", src.ID, err)
	}
	var list []godwit.Credential
	if err := json.Unmarshal(plain, &list); err != nil {
		return nil, fmt.Errorf("read credentials of source %s: not what was sealed", src.ID)
	}
	return list, nil
}

// Get returns a source of the tenant.
func (s *Sources) Get(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID) (*godwit.Source, error) {
	return s.cfg.Store.Source(ctx, tenant, id)
}

// List pages through the sources of a tenant or environment.
func (s *Sources) List(ctx context.Context, f store.SourceFilter, p store.Page) ([]godwit.Source, error) {
	return s.cfg.Store.ListSources(ctx, f, p)
}

// Update applies edit to a source that is as the request expects. It calls edit again if the source changed meanwhile.
func (s *Sources) Update(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, m godwit.Match, edit func(*Spec) error, permit Permit) (*godwit.Source, error) {
	return s.edit(ctx, tenant, id, func(before *godwit.Source) (*Spec, error) {
		if err := expect(m, before.Version); err != nil {
			return nil, err
		}
		spec := specOf(before)
		return spec, edit(spec)
	}, permit)
}

// edit gives a source the specification that next returns. A source that has it already stays as it is.
func (s *Sources) edit(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, next func(before *godwit.Source) (*Spec, error), permit Permit) (*godwit.Source, error) {
	return s.change(ctx, tenant, id, func(src *godwit.Source) error {
		before := *src
		spec, err := next(&before)
		if err != nil {
			return err
		}
		switch {
		case spec.Scheme != src.Scheme:
			return fieldError("scheme", "is fixed when a source is created; create another one")
		case len(spec.Credentials) > 0:
			return fieldError("credentials", "are changed by rotate")
		}
		if err := s.check(spec); err != nil {
			return err
		}
		spec.lay(src)
		if reflect.DeepEqual(specOf(src), specOf(&before)) {
			return errUnchanged
		}
		list, err := s.open(src)
		if err != nil {
			return err
		}
		if err := s.seal(src, list, s.now()); err != nil {
			return err
		}
		return permit.allow(&before, src)
	})
}

// SetStatus pauses, resumes or deletes a source. A deleted source loses its credentials.
func (s *Sources) SetStatus(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, status godwit.SourceStatus) (*godwit.Source, error) {
	return s.change(ctx, tenant, id, func(src *godwit.Source) error { src.Status = status; return nil })
}

// Delete deletes a source that is as the request expects.
func (s *Sources) Delete(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, m godwit.Match) (*godwit.Source, error) {
	return s.change(ctx, tenant, id, func(src *godwit.Source) error {
		src.Status, src.Sealed, src.Credentials = godwit.SourceDeleted, nil, nil
		return expect(m, src.Version)
	})
}

// changeTries bounds how often a change is made anew because another request created or changed the source meanwhile.
const changeTries = 50

// errUnchanged reports that a source is already as a change would make it.
var errUnchanged = errors.New("nothing to change")

// change applies f to the stored source, and again if a concurrent change came first.
func (s *Sources) change(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, f func(*godwit.Source) error) (*godwit.Source, error) {
	last := int64(0)
	for try := 1; ; try++ {
		src, err := s.cfg.Store.Source(ctx, tenant, id)
		if err != nil {
			return nil, fmt.Errorf("find source: %w", err)
		}
		if src.Version == last { // no change came first: the name is taken
			return nil, nameTaken("update source", store.ErrConflict)
		}
		last = src.Version
		err = f(src)
		if errors.Is(err, errUnchanged) {
			return src, nil
		}
		if err != nil {
			return nil, err
		}
		src.Version++
		src.UpdatedAt = s.now()
		err = s.cfg.Store.UpdateSource(ctx, src)
		if errors.Is(err, store.ErrConflict) && try < changeTries {
			continue
		}
		if err != nil {
			return nil, nameTaken("update source", err)
		}
		return src, nil
	}
}

// Acknowledge records that the upstream agreed to a version of the description. Only the current version is accepted,
// because no other can be read.
func (s *Sources) Acknowledge(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, version, by, actor string) (*godwit.Acknowledgment, error) {
	if why := checkText(by, 1, 200); why != "" {
		return nil, fieldError("by", "%s", why)
	}
	if _, err := s.cfg.Store.Source(ctx, tenant, id); err != nil {
		return nil, fmt.Errorf("find source: %w", err)
	}
	if current := s.cfg.Terms.Version(); version != current {
		return nil, problem.Conflict.With("the service description has the version %s now: read it again at /.well-known/webhook-service", current)
	}
	now := s.now()
	return idempotency.Once(ctx, now,
		func(ack godwit.AcknowledgmentID) (*godwit.Acknowledgment, error) {
			return s.acknowledgment(ctx, tenant, id, ack)
		},
		func(ack godwit.AcknowledgmentID) (*godwit.Acknowledgment, error) {
			a := &godwit.Acknowledgment{
				ID: ack, TenantID: tenant, SourceID: id, Version: version, Terms: s.cfg.Terms.encode(), By: by, Actor: actor, At: now,
			}
			if err := s.cfg.Store.AddAcknowledgment(ctx, a); err != nil {
				return nil, fmt.Errorf("add acknowledgment: %w", err)
			}
			return a, nil
		})
}

// acknowledgment finds one of the source's newest acknowledgments.
func (s *Sources) acknowledgment(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, id godwit.AcknowledgmentID) (*godwit.Acknowledgment, error) {
	list, err := s.cfg.Store.ListAcknowledgments(ctx, tenant, source, store.Page{Limit: 100})
	if err != nil {
		return nil, fmt.Errorf("read acknowledgments: %w", err)
	}
	for i := range list {
		if list[i].ID == id {
			return &list[i], nil
		}
	}
	return nil, store.ErrNotFound
}

// Acknowledgments lists the acknowledgments of a source, newest first.
func (s *Sources) Acknowledgments(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, p store.Page) ([]godwit.Acknowledgment, error) {
	if _, err := s.cfg.Store.Source(ctx, tenant, id); err != nil {
		return nil, fmt.Errorf("find source: %w", err)
	}
	return s.cfg.Store.ListAcknowledgments(ctx, tenant, id, p)
}

// ModeOf returns the mode in force. It is store-and-forward only if the source asks for it and the last acknowledgment is
// valid (EDS-INT-8, EDS-INT-11). Earlier acknowledgments do not count: an upstream that has agreed to stronger terms since
// relies on them, and a description that returns to weaker terms needs a new acknowledgment (EDS T-18). The acknowledgment
// is nil in pass-through. An environment that keeps dead letters for a shorter time than the description says does not keep its promise.
func (s *Sources) ModeOf(ctx context.Context, t *godwit.Tenant, src *godwit.Source) (godwit.RelayMode, *godwit.Acknowledgment, error) {
	if src.Mode != godwit.StoreAndForward {
		return godwit.PassThrough, nil, nil
	}
	list, err := s.cfg.Store.ListAcknowledgments(ctx, src.TenantID, src.ID, store.Page{Limit: 1})
	if err != nil {
		return godwit.PassThrough, nil, fmt.Errorf("read acknowledgments: %w", err)
	}
	terms := s.cfg.Terms
	if kept := float64(t.KeepDeadLetters); kept > 0 {
		terms.DeadLetters = min(terms.DeadLetters, kept)
	}
	if len(list) == 0 || !terms.holds(&list[0]) {
		return godwit.PassThrough, nil, nil
	}
	return godwit.StoreAndForward, &list[0], nil
}

// Rejections lists the requests that a source refused, newest first.
func (s *Sources) Rejections(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, p store.Page) ([]godwit.Rejection, error) {
	if _, err := s.cfg.Store.Source(ctx, tenant, id); err != nil {
		return nil, fmt.Errorf("find source: %w", err)
	}
	return s.cfg.Store.ListRejections(ctx, tenant, id, p)
}
