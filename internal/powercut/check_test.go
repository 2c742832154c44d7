package powercut

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// check opens a copy of what survived and returns everything that is missing or wrong.
func (a *acknowledged) check(survivors, copyDir string) (faults []error) {
	if err := os.CopyFS(copyDir, os.DirFS(survivors)); err != nil {
		return []error{err}
	}
	if err := integrity(filepath.Join(copyDir, "godwit.db")); err != nil {
		return []error{err}
	}
	if a.tenant == "" {
		return nil
	}
	ctx := context.Background()
	s, err := sqlite.Open(ctx, copyDir, sqlite.Options{})
	if err != nil {
		return []error{fmt.Errorf("open what survived: %w", err)}
	}
	defer s.Close()
	tenant, err := godwit.ParseTenantID(a.tenant)
	if err != nil {
		return []error{err}
	}
	c := &checker{acknowledged: a, ctx: ctx, s: s, tenant: tenant}
	c.events()
	c.deliveries()
	c.management()
	c.commandRecords()
	c.evidence(copyDir)
	return c.faults
}

// integrity lets SQLite check the whole file, indexes included.
func integrity(file string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil // cut before the first sync of the directory
	}
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return err
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil {
		return fmt.Errorf("integrity check: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("integrity check: %s", verdict)
	}
	return nil
}

type checker struct {
	*acknowledged
	ctx    context.Context
	s      store.Store
	tenant godwit.TenantID
	faults []error
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// list reads all pages.
func list[T any](c *checker, id func(*T) [16]byte, page func(store.Page) ([]T, error)) (all []T) {
	for p := (store.Page{Limit: 500}); ; {
		part, err := page(p)
		if err != nil {
			c.fault("list: %w", err)
			return all
		}
		all = append(all, part...)
		if len(part) < p.Limit {
			return all
		}
		p.After = id(&part[len(part)-1])
	}
}

func (c *checker) events() {
	there := map[string]string{}
	for _, e := range list(c, func(e *godwit.Event) [16]byte { return e.ID }, func(p store.Page) ([]godwit.Event, error) {
		return c.s.ListEvents(c.ctx, store.EventFilter{TenantID: c.tenant}, p)
	}) {
		there[e.ID.String()] = ""
	}
	for id, body := range c.acknowledged.events {
		if _, ok := there[id]; !ok {
			c.fault("event %s was acknowledged and is lost", id)
			continue
		}
		eid, err := godwit.ParseEventID(id)
		if err != nil {
			c.fault("%w", err)
			continue
		}
		e, err := c.s.Event(c.ctx, c.tenant, eid)
		if err != nil || string(e.Body) != body {
			c.fault("event %s has another body than was posted: %v", id, err)
		}
	}
}

func (c *checker) deliveries() {
	receivers := map[string]map[string]bool{} // event → endpoints
	for _, d := range list(c, func(d *godwit.Delivery) [16]byte { return d.ID }, func(p store.Page) ([]godwit.Delivery, error) {
		return c.s.ListDeliveries(c.ctx, store.DeliveryFilter{TenantID: c.tenant}, p)
	}) {
		e := d.EventID.String()
		if receivers[e] == nil {
			receivers[e] = map[string]bool{}
		}
		receivers[e][d.EndpointID.String()] = true
		if c.accepted[d.ID.String()] && (d.Status != godwit.DeliveryAccepted || d.Attempts == 0) {
			c.fault("delivery %s was shown as accepted and is %s after %d attempts", d.ID, d.Status, d.Attempts)
		}
	}
	for id := range c.acknowledged.events {
		for _, endpoint := range c.endpoints {
			if !receivers[id][endpoint] {
				c.fault("event %s was acknowledged; its delivery to %s is lost", id, endpoint)
			}
		}
	}
}

func (c *checker) management() {
	for _, text := range append(append([]string(nil), c.endpoints...), c.others...) {
		id, err := godwit.ParseEndpointID(text)
		if err == nil {
			_, err = c.s.Endpoint(c.ctx, c.tenant, id)
		}
		if err != nil {
			c.fault("endpoint %s was created: %w", text, err)
		}
	}
	for token, revoked := range c.keys {
		k, err := c.s.KeyByHash(c.ctx, godwit.HashToken(token))
		if err != nil {
			c.fault("a key was created: %w", err)
		} else if revoked && k.RevokedAt.IsZero() {
			c.fault("key %s was revoked and is valid", k.ID)
		}
	}
}

func (c *checker) commandRecords() {
	for id := range c.commands {
		r, err := c.s.FindCommand(c.ctx, c.acknowledged.tenant, id)
		switch {
		case err != nil:
			c.fault("find command %s: %w", id, err)
		case r == nil:
			c.fault("command %s was executed; its record is lost", id)
		case r.Status != command.Executed:
			c.fault("command %s was executed and is %s", id, r.Status)
		}
		items, err := c.s.Evidence(c.ctx, command.EvidenceQuery{Tenant: c.acknowledged.tenant, CommandID: id, Limit: 10})
		if err != nil || len(items) == 0 {
			c.fault("command %s was executed; its evidence is lost (%v)", id, err)
		}
	}
}

// evidence exports the chain and verifies it, as an auditor does.
func (c *checker) evidence(data string) {
	head, err := c.s.EvidenceHead(c.ctx, c.acknowledged.tenant)
	if err != nil || head.Seq == 0 {
		if err != nil {
			c.fault("read evidence: %w", err)
		}
		return
	}
	cfg := config.Default()
	cfg.Data = data
	key, err := app.EvidenceKey(&cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		c.fault("%w", err)
		return
	}
	var file bytes.Buffer
	if err := c.export(&file, key, head); err != nil {
		c.fault("export evidence: %w", err)
		return
	}
	if _, err := evidence.Verify(&file, evidence.Options{Keys: []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}}); err != nil {
		c.fault("the evidence does not verify: %w", err)
	}
}

func (c *checker) export(w io.Writer, key ed25519.PrivateKey, head evidence.Head) error {
	out, err := evidence.NewExporter(w, key, c.acknowledged.tenant, head, 1, time.Now())
	if err != nil {
		return err
	}
	for seq := int64(0); seq < head.Seq; {
		items, err := c.s.Evidence(c.ctx, command.EvidenceQuery{Tenant: c.acknowledged.tenant, After: seq, Limit: int(min(500, head.Seq-seq))})
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return fmt.Errorf("the chain ends after %d of %d items", seq, head.Seq)
		}
		if err := out.Append(items...); err != nil {
			return err
		}
		seq = items[len(items)-1].Seq
	}
	return out.Close()
}
