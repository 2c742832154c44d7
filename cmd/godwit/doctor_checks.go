package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/postgres"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// examination is one run of the doctor.
type examination struct {
	env        *environment
	cfg        *config.Config
	originsErr error
	ring       *keyring.Ring
	stored     bool               // a database exists and opens
	settings   *postgres.Settings // nil if the database did not answer
}

type check struct {
	name string
	run  func() finding
}

func (e *examination) checks() []check {
	all := []check{
		{"version", e.version}, {"config", e.config}, {"environment", e.environment}, {"clock", e.clock}, {"files", e.files}, {"data", e.data},
	}
	if e.cfg.Postgres() {
		all = append(all, check{"key ring", e.keyring}, check{"database", e.database}, check{"store", e.store})
		all = append(all, e.databaseChecks()...)
	} else {
		all = append(all, check{"disk", e.disk}, check{"fsync", e.fsync}, check{"key ring", e.keyring}, check{"store", e.store})
	}
	return append(all, check{"integrity", e.integrity}, check{"listen", e.listen}, check{"certificate", e.certificate}, check{"egress", e.egress})
}

func (e *examination) version() finding {
	b := telemetry.Build()
	return ok("godwit %s, %s", b.Version, b.Go)
}

func (e *examination) config() finding {
	if err := errors.Join(e.originsErr, e.cfg.Check()); err != nil {
		return fail("\"godwit config\" shows where each value comes from", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return ok("every setting is valid")
}

func (e *examination) environment() finding {
	if unknown := config.UnknownEnv(os.Environ()); len(unknown) > 0 {
		return warn("correct the names; \"godwit config reference\" lists them", "no setting is called %s", strings.Join(unknown, ", "))
	}
	return ok("no misspelt variables")
}

// clock finds a machine whose time was never set: retries and signatures would carry wrong times.
func (e *examination) clock() finding {
	now := time.Now()
	built, err := time.Parse(time.RFC3339, telemetry.Build().Time)
	if err == nil && now.Before(built.Add(-time.Hour)) {
		return fail("set the clock, best by NTP", "the time is %s, before this binary was made", now.Format(time.RFC3339))
	}
	if now.Year() < 2024 {
		return fail("set the clock, best by NTP", "the time is %s", now.Format(time.RFC3339))
	}
	return ok("%s", now.Format(time.RFC3339))
}

func (e *examination) files() finding {
	limit, known := openFileLimit()
	need := uint64(e.cfg.Limits.InFlight)*2 + 1024
	switch {
	case !known:
		return ok("no limit is known here")
	case limit < need:
		return warn("raise it (ulimit -n, or LimitNOFILE= in the service), or lower limits-in-flight",
			"%d files may be open; with limits-in-flight %d there should be %d", limit, e.cfg.Limits.InFlight, need)
	}
	return ok("%d files may be open", limit)
}

// data checks the data directory, or its nearest parent that exists.
func (e *examination) data() finding {
	dir, err := existing(e.cfg.Data)
	if err != nil {
		return fail("name another directory with --data", "%v", err)
	}
	if dir != filepath.Clean(e.cfg.Data) {
		return ok("%s will be made in %s", e.cfg.Data, dir)
	}
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return fail("give this user the right to write there, or name another directory with --data", "%v", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		return warn("chmod 700 "+dir, "other users of this machine can look into %s", dir)
	}
	return ok("%s is writable", dir)
}

func existing(path string) (string, error) {
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return dir, nil
		case err == nil:
			return "", &fs.PathError{Op: "use", Path: dir, Err: errors.New("not a directory")}
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return "", err
		}
	}
}

func (e *examination) disk() finding {
	dir, err := existing(e.cfg.Data)
	if err != nil {
		return fail("", "%v", err)
	}
	free, known := freeSpace(dir)
	const least = config.Size(1 << 30)
	switch {
	case !known:
		return ok("the free space is not known here")
	case free < least:
		return warn("make room, or shorten retention-events: with a full disk ingest answers 503", "only %s are free", megabytes(free))
	}
	return ok("%s are free", megabytes(free))
}

func megabytes(s config.Size) string { return config.Size(s >> 20 << 20).String() }

// fsync measures the time that each group commit waits for the disk.
func (e *examination) fsync() finding {
	dir, err := existing(e.cfg.Data)
	if err != nil {
		return fail("", "%v", err)
	}
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return warn("", "cannot be measured: %v", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	rand.Read(page)
	var took []time.Duration
	for range 20 {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return fail("", "%v", err)
		}
		if err := f.Sync(); err != nil {
			return fail("", "%v", err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	p50 := took[len(took)/2].Round(10 * time.Microsecond)
	if p50 > 20*time.Millisecond {
		return warn("use a faster disk: every acknowledgement waits for a sync", "a sync takes %s", p50)
	}
	return ok("a sync takes %s", p50)
}

// keyring looks for the key ring and does not create one.
func (e *examination) keyring() finding {
	if e.cfg.Keyring == "" && !e.cfg.Postgres() {
		path := e.cfg.KeyringFile
		if path == "" {
			path = filepath.Join(e.cfg.Data, "keyring")
		}
		_, ringErr := os.Stat(path)
		_, dbErr := os.Stat(app.DatabaseFile(&e.cfg.Storage))
		if errors.Is(ringErr, fs.ErrNotExist) && errors.Is(dbErr, fs.ErrNotExist) {
			return ok("%s will be made at the first start; back it up then", path)
		}
	}
	ring, err := app.OpenRing(&e.cfg.Storage, slog.New(slog.DiscardHandler))
	if err != nil {
		return fail("", "%v", err)
	}
	sealed := ring.Seal([]byte("doctor"), "doctor")
	if plain, err := ring.Open(sealed, "doctor"); err != nil || string(plain) != "doctor" {
		return fail("", "a sealed value does not open: %v", err)
	}
	e.ring = ring
	return ok("seals with key %s", ring.Active())
}

func (e *examination) store() finding {
	ctx, cancel := context.WithTimeout(e.env.ctx, databaseTimeout)
	defer cancel()
	if !e.cfg.Postgres() {
		if _, err := os.Stat(app.DatabaseFile(&e.cfg.Storage)); errors.Is(err, fs.ErrNotExist) {
			return ok("%s will be made at the first start", app.DatabaseFile(&e.cfg.Storage))
		}
	}
	schema, err := app.ReadSchema(ctx, &e.cfg.Storage)
	switch {
	case err != nil:
		return fail("", "%v", err)
	case !schema.Usable:
		return fail("use the release that wrote it, or a later one", "schema version %d is newer than this binary's %d", schema.Version, schema.Current)
	case schema.Version < schema.Current:
		return ok("schema version %d will be brought to %d at the next start", schema.Version, schema.Current)
	}
	st, err := app.OpenStore(ctx, &e.cfg.Storage, slog.New(slog.DiscardHandler))
	if err != nil {
		return fail("", "%v", err)
	}
	defer st.Close()
	e.stored = true
	d, err := st.Describe(ctx)
	if err != nil {
		return fail("", "%v", err)
	}
	if err := st.Ping(ctx); err != nil {
		return fail("", "it takes no writes: %v", err)
	}
	if e.ring != nil {
		rows, err := st.SealedRows(ctx, "", 20)
		if err != nil {
			return fail("", "%v", err)
		}
		for _, row := range rows {
			if err := management.CheckSealed(e.ring, row); err != nil {
				return fail("add the key that sealed it to the key ring", "a secret in the store does not open: %v", err)
			}
		}
	}
	return ok("%s %s, %s, schema %d; %s", d.Backend, d.Version, d.Location, d.SchemaVersion, d.Durability)
}

// verifyTimeout bounds the reading of the whole database.
const verifyTimeout = 10 * time.Minute

// integrity makes the database check itself for damage.
func (e *examination) integrity() finding {
	if !e.stored {
		return ok("there is no database yet, or it could not be opened")
	}
	ctx, cancel := context.WithTimeout(e.env.ctx, verifyTimeout)
	defer cancel()
	st, err := app.OpenStore(ctx, &e.cfg.Storage, slog.New(slog.DiscardHandler))
	if err != nil {
		return fail("", "%v", err)
	}
	defer st.Close()
	looked, err := st.Verify(ctx)
	switch {
	case errors.Is(err, store.ErrDamaged) && e.cfg.Postgres():
		return fail("stop the server and rebuild the index with REINDEX; if damage is found again, restore the database from a backup", "%v", err)
	case errors.Is(err, store.ErrDamaged):
		return fail("stop the server and restore the database from a backup", "%v", err)
	case err != nil:
		return fail("", "%v", err)
	}
	return ok("%s", looked)
}

func (e *examination) listen() finding {
	l, err := net.Listen("tcp", e.cfg.Listen)
	if err == nil {
		l.Close()
		return ok("%s is free", e.cfg.Listen)
	}
	scheme := "http"
	if e.cfg.Secure() {
		scheme = "https"
	}
	client := &http.Client{Timeout: 3 * time.Second}
	if resp, err := client.Get(scheme + "://" + e.cfg.Listen + "/healthz"); err == nil {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		if resp.StatusCode == http.StatusOK && strings.Contains(string(text), "alive") {
			return warn("fine, unless you mean to start another one", "a godwit server already runs on %s", e.cfg.Listen)
		}
	}
	return fail("stop what uses it, or choose another address with --listen", "%v", err)
}

func (e *examination) certificate() finding {
	if len(e.cfg.ACME.Domains) > 0 {
		for _, d := range e.cfg.ACME.Domains {
			if _, err := net.DefaultResolver.LookupHost(e.env.ctx, d); err != nil {
				return fail("make the name lead to this machine: the authority connects to it on port 443", "%v", err)
			}
		}
		if onLoopback(e.cfg.Listen) {
			return warn("listen where the names lead to, as with --listen :443", "ACME for %s, but %s is reached from this machine alone",
				strings.Join(e.cfg.ACME.Domains, ", "), e.cfg.Listen)
		}
		return ok("ACME for %s", strings.Join(e.cfg.ACME.Domains, ", "))
	}
	if e.cfg.TLS.Cert == "" {
		if !onLoopback(e.cfg.Listen) {
			return warn("let a proxy on this machine end TLS, or set tls-cert or acme-domains: API keys and payloads could be read on the way",
				"plain http on %s", e.cfg.Listen)
		}
		return ok("plain http; let a proxy end TLS, or set tls-cert or acme-domains")
	}
	text, err := os.ReadFile(e.cfg.TLS.Cert)
	if err != nil {
		return fail("", "%v", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fail("", "%s holds no certificate in PEM", e.cfg.TLS.Cert)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fail("", "%s: %v", e.cfg.TLS.Cert, err)
	}
	left := time.Until(cert.NotAfter)
	switch {
	case left <= 0:
		return fail("renew it", "the certificate ended %s", cert.NotAfter.Format(time.DateTime))
	case left < 14*24*time.Hour:
		return warn("renew it; the server reads it again by itself", "the certificate ends %s", cert.NotAfter.Format(time.DateTime))
	}
	return ok("valid until %s", cert.NotAfter.Format(time.DateTime))
}

// onLoopback reports whether an address can be reached from this machine only.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// egress checks whether deliveries can leave the machine.
func (e *examination) egress() finding {
	if e.cfg.Proxy != "" {
		u, err := url.Parse(e.cfg.Proxy)
		if err != nil {
			return fail("", "the proxy is not a URL")
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if port == "" {
			port = "1080"
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(u.Hostname(), port), 3*time.Second)
		if err != nil {
			return fail("", "the proxy cannot be reached: %v", err)
		}
		conn.Close()
		return ok("by the proxy %s, which has to refuse private addresses itself", u.Redacted())
	}
	ctx, cancel := context.WithTimeout(e.env.ctx, 3*time.Second)
	defer cancel()
	if _, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, "example.com"); err != nil {
		return warn("deliveries to names need DNS; to private networks allow their ranges with allow-address", "example.com does not resolve: %v", err)
	}
	return ok("names resolve")
}
