package app

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// commands holds the executor and its dependencies.
type commands struct {
	executor   *command.Executor
	runner     *builtincommand.Runner
	previewer  *builtincommand.Previewer
	key        ed25519.PrivateKey
	checkpoint time.Duration
	log        *slog.Logger
	now        func() time.Time
}

func newCommands(ctx context.Context, s *services, d Dependencies) (*commands, error) {
	set := &s.cfg.Commands
	key, err := EvidenceKey(&s.cfg, s.log)
	if err != nil {
		return nil, err
	}
	if err := CheckEvidenceKey(ctx, s.store, key); err != nil {
		return nil, err
	}
	counts, err := s.metrics.Commands()
	if err != nil {
		return nil, err
	}
	reg, err := s.registerCommands(d)
	if err != nil {
		return nil, err
	}
	cfg := command.Config{
		Store: s.store, Registry: reg, Sealer: s.ring, Log: s.log, Now: s.clock.Now, Owner: s.cfg.Node,
		AfterFunc: func(d time.Duration, f func()) func() bool { return s.clock.AfterFunc(d, f).Stop },
		Lease:     max(d.TimeScale.Real(set.Lease.Real()), time.Second),
		TokenLife: set.ConfirmWithin.Real(), DuplicatesPerKey: limit(set.RepeatsPerKey), DuplicatesPerActor: limit(set.RepeatsPerActor),
		Scale:   d.TimeScale.Real,
		Decided: func(d command.Decision) { counts.Decided(string(d)) }, Limited: counts.Limited, Unresolved: counts.Unresolved,
	}
	if d.NoLimits {
		cfg.DuplicatesPerKey, cfg.DuplicatesPerActor = -1, -1
	}
	if d.TuneCommands != nil {
		d.TuneCommands(&cfg)
	}
	x, err := command.New(cfg)
	if err != nil {
		return nil, err
	}
	if err := reg.Register(command.Compensation("manage"), x.Compensator()); err != nil {
		return nil, err
	}
	if err := reg.Register(command.Resolution("admin"), x.Resolver()); err != nil {
		return nil, err
	}
	return &commands{executor: x, runner: s.newRunner(x, d), previewer: builtincommand.NewPreviewer(s.builtinCommands()), key: key,
		checkpoint: d.TimeScale.Real(set.CheckpointEvery.Real()), log: s.log, now: s.clock.Now}, nil
}

// newRunner makes the Runner with which the other APIs execute Godwit's own operations.
func (s *services) newRunner(x *command.Executor, d Dependencies) *builtincommand.Runner {
	return &builtincommand.Runner{Executor: x, Config: s.builtinCommands(), Now: s.clock.Now, KeyWindow: d.TimeScale.Real(s.cfg.IdempotencyWindow.Real())}
}

// witness records evidence of the decision about a management request with an Idempotency-Key (IDS IT-15). The evidence
// holds neither the client's key nor any content of the request.
func (c *commands) witness(_ context.Context, d idempotency.Decision) error {
	e := evidence.Entry{
		Type: evidence.Observation, At: d.At, Decision: string(d.Outcome), Key: hex.EncodeToString(d.ID[:]), Command: d.Route,
		Actor: d.Actor, Session: d.Session, User: d.User, Channel: d.Channel, Fingerprint: fmt.Sprintf("sha256:%x", d.Fingerprint),
	}
	switch {
	case d.Outcome == idempotency.ConflictRejected:
		e.Type, e.Stored, e.Reason = evidence.RejectedTy, fmt.Sprintf("sha256:%x", d.Stored), problem.KeyReused.Code
	case d.InProgress:
		e.OutcomeStatus = string(command.InProgress)
	}
	err := c.executor.Observe(d.Tenant.String(), e)
	var stopping *command.Refusal
	if errors.As(err, &stopping) {
		return problem.Unavailable.With("%s", stopping.Detail)
	}
	return err
}

// changed records evidence of a change that was made through a session. It is made already, so a failure is only logged.
func (c *commands) changed(_ context.Context, by *management.Caller, change string, status int) {
	err := c.executor.Observe(by.Tenant.ID.String(), evidence.Entry{
		Type: evidence.Observation, At: c.now(), Command: change, Target: changedObject(change), Actor: by.Principal(), Session: by.SessionID(), User: by.User(), Channel: "native", ResponseStatus: status,
	})
	if err != nil {
		c.log.Error("evidence of a change not stored", "change", change, "actor", by.Actor(), "error", err)
	}
}

// changedObject returns the id in the path of a change, as in "PATCH /v1/endpoints/sub_1"; empty if there is none.
func changedObject(change string) string {
	_, path, _ := strings.Cut(change, " /")
	if parts := strings.Split(path, "/"); len(parts) > 2 {
		return parts[2]
	}
	return ""
}

// limit translates a setting for the executor: 0 means no limit in settings, a negative value in the executor.
func limit(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// builtinCommands returns the configuration of Godwit's own commands.
func (s *services) builtinCommands() builtincommand.Config {
	return builtincommand.Config{Management: s.management, Engine: s.engine, Store: s.store, Intake: s.intake, Probe: s.cfg.Commands.Probe}
}

// registerCommands registers all commands. An invalid declaration prevents the server from starting (IDS-CLS-1).
func (s *services) registerCommands(d Dependencies) (*command.Registry, error) {
	reg := command.NewRegistry()
	cfg := s.builtinCommands()
	if err := builtincommand.Register(reg, cfg); err != nil {
		return nil, err
	}
	if d.Commands != nil {
		if err := d.Commands(reg); err != nil {
			return nil, err
		}
	}
	path := s.cfg.Commands.File
	if path == "" {
		return reg, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("commands-file: %w", err)
	}
	defer f.Close()
	declared, err := command.ReadDeclarations(f)
	if err != nil {
		return nil, fmt.Errorf("commands-file %s: %w", path, err)
	}
	if err := builtincommand.RegisterRemote(reg, cfg, declared); err != nil {
		return nil, fmt.Errorf("commands-file %s: %w", path, err)
	}
	return reg, nil
}

// start executes commands from when this node accepts events until ctx ends. The channel is closed when all commands have ended
// or were left to other nodes.
func (c *commands) start(ctx context.Context, accepting <-chan struct{}, leads func() bool) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-accepting:
		case <-ctx.Done():
			return
		}
		signed := make(chan struct{})
		go func() { defer close(signed); c.sign(ctx, leads) }()
		c.executor.Run(ctx)
		<-signed
	}()
	return ended
}

// sign makes checkpoints at intervals, on the node that leads.
func (c *commands) sign(ctx context.Context, leads func() bool) {
	ticker := time.NewTicker(max(c.checkpoint, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !leads() {
			continue
		}
		if _, err := c.executor.Checkpoint(ctx, c.key); err != nil && ctx.Err() == nil {
			c.log.Warn("evidence not signed; it is tried again", "error", err)
		}
	}
}

// EvidenceKey reads the key that signs evidence. Unless the setting names a file, it creates the key in the data directory
// the first time.
func EvidenceKey(cfg *config.Config, log *slog.Logger) (ed25519.PrivateKey, error) {
	path := cfg.Commands.EvidenceKey
	if path == "" {
		path = filepath.Join(cfg.Storage.Data, evidenceKeyFile)
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && cfg.Commands.EvidenceKey == "":
		key, err := makeEvidenceKey(path)
		if err == nil {
			log.Warn("made the key that evidence is signed with; back it up, and give the same to other nodes", "file", path)
		}
		return key, err
	case err != nil:
		return nil, fmt.Errorf("commands-evidence-key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("commands-evidence-key: %s holds no PEM", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("commands-evidence-key: %s: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("commands-evidence-key: %s is not an Ed25519 key; make one with: openssl genpkey -algorithm ed25519", path)
	}
	return key, nil
}

// EnsureEvidenceKey creates the key in a data directory unless it exists, for development. With a seed the key is always
// the same, so that a later trial on the same database signs with it.
func EnsureEvidenceKey(data, seed string) error {
	path := filepath.Join(data, evidenceKeyFile)
	var err error
	if seed == "" {
		_, err = makeEvidenceKey(path)
	} else {
		sum := sha256.Sum256([]byte(seed))
		err = writeEvidenceKey(path, ed25519.NewKeyFromSeed(sum[:]))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

const evidenceKeyFile = "evidence.key"

func makeEvidenceKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, writeEvidenceKey(path, key)
}

func writeEvidenceKey(path string, key ed25519.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writeOnce(path, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))); err != nil {
		return fmt.Errorf("write evidence key: %w", err)
	}
	return nil
}
