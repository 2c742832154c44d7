package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/cli"
)

type evidenceCommand struct {
	Key    evidenceKeyCommand    `cmd:"" help:"Fetch the public key with which a server signs evidence, to pin it."`
	Export evidenceExportCommand `cmd:"" help:"Fetch a tenant's evidence from a running server, as a signed file."`
	Verify evidenceVerifyCommand `cmd:"" help:"Check a file offline, and name its first broken link."`
	Show   evidenceShowCommand   `cmd:"" help:"Show the contents of a file: all commands, one command, or a line for each key."`
}

// Help returns the text that --help shows.
func (evidenceCommand) Help() string {
	return `Every decision about a command leaves an item of evidence, chained to the one before it by its hash. A chain is
exported as a file that can be checked without the server.

Examples:

    godwit evidence key --output evidence.pub
    godwit evidence export --output march.ndjson
    godwit evidence verify march.ndjson --key evidence.pub
    godwit evidence show march.ndjson --key-of 92157a971581607c35679ded303a541d8a1bec4a28e6778e56c0f9f17302aee0`
}

// evidenceFile is a file and the values that it is verified against.
type evidenceFile struct {
	File   string   `arg:"" help:"The exported file; - is standard input."`
	Key    []string `name:"key" sep:"none" help:"Public key to trust: a file with it as PEM or as the JSON of /ids/v1/evidence/key, or the base64 of the key. May be given more than once. Defaults to the key that the file names itself, which shows that the file is whole and not who made it." placeholder:"FILE|BASE64"`
	Tenant string   `name:"tenant" help:"Tenant that the chain must belong to. Defaults to any tenant." placeholder:"TEN_ID"`
	Known  []string `name:"known" sep:"none" help:"Hash of an item that is known from elsewhere, such as the last one of an earlier export; shows a chain that was made anew as a whole. May be given more than once." placeholder:"SEQ=HASH"`
}

// verify reads the file. The error is a *evidence.Broken if the file does not verify.
func (f *evidenceFile) verify(env *environment, each func(int64, *evidence.Item) error) (evidence.Report, error) {
	o := evidence.Options{Tenant: f.Tenant, Item: each}
	for _, text := range f.Key {
		k, err := readPublicKey(text)
		if err != nil {
			return evidence.Report{}, fmt.Errorf("--key: %w", err)
		}
		o.Keys = append(o.Keys, k)
	}
	for _, text := range f.Known {
		seq, hash, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil || n < 1 || !strings.HasPrefix(hash, "sha256:") {
			return evidence.Report{}, fmt.Errorf("--known: %q is not a sequence number and a hash, such as 42=sha256:…", text)
		}
		o.Known = append(o.Known, evidence.Head{Seq: n, Hash: hash})
	}
	in := &progress{ctx: env.ctx, in: env.stdin, out: env.stderr, next: time.Now().Add(progressEvery)}
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return evidence.Report{}, err
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			in.total = info.Size()
		}
		in.in = file
	}
	return evidence.Verify(in, o)
}

// readPublicKey reads the file of this name if it exists; otherwise the text is the key itself.
func readPublicKey(text string) (ed25519.PublicKey, error) {
	content, err := os.ReadFile(text)
	if err == nil {
		k, err := evidence.ParsePublicKey(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		return k, nil
	}
	k, keyErr := evidence.ParsePublicKey(text)
	if keyErr != nil {
		return nil, fmt.Errorf("%q is neither a file (%w) nor a public key (%w)", text, err, keyErr)
	}
	return k, nil
}

type evidenceVerifyCommand struct {
	evidenceFile `embed:""`
	JSON         bool `name:"json" help:"Print one JSON object."`
}

// Help returns the text that --help shows.
func (evidenceVerifyCommand) Help() string {
	return `Reads the file once, needs no server and little memory, and ends with 0 if the file is valid. If not, it names the first
line where a byte was changed, put in or taken out, says what is wrong there, and ends with 1.

A valid file was not changed since the holder of the key signed it. An operator with both the key and the database can make
another chain; to rule that out, keep the last hash of each export and pass it with --known.

Examples:

    godwit evidence verify march.ndjson --key evidence.pub
    godwit evidence verify march.ndjson --key gyClGXfYw4yopJJ8Zw31gh5El2GUXhXp77JqFQnSMOo=
    godwit evidence verify april.ndjson --key evidence.pub --known 20345=sha256:55b3ece5…
    godwit evidence verify march.ndjson --json | jq .broken`
}

func (c *evidenceVerifyCommand) Run(env *environment) error {
	report, err := c.verify(env, nil)
	if err != nil && report.Broken == nil {
		return fmt.Errorf("verify evidence: %w", err)
	}
	if c.JSON {
		err = printJSON(env.stdout, struct {
			Holds bool `json:"holds"`
			evidence.Report
			Notes []string `json:"notes,omitempty"`
		}{report.Broken == nil, report, report.Notes()})
	} else {
		err = printReport(env.stdout, c.File, &report)
	}
	if err == nil && report.Broken != nil {
		return errSilent
	}
	return err
}

func printReport(w io.Writer, name string, r *evidence.Report) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	if r.Broken == nil {
		fmt.Fprintf(&b, "%s holds\n", name)
	} else {
		fmt.Fprintf(&b, "%s is broken at %s\n", name, r.Broken.Error())
	}
	if r.KeyID == "" { // the header cannot be trusted
		_, err := io.WriteString(w, b.String())
		return err
	}
	line("tenant", "%s", cli.Printable(r.Tenant))
	switch {
	case r.Broken != nil:
		line("items", "%d before it hold, of %d to %d", r.Items, r.From, r.To)
	case r.Items == 0:
		line("items", "none after %d", r.To)
	default:
		line("items", "%d to %d", r.From, r.To)
	}
	line("last hash", "%s", r.ToHash)
	line("exported", "%s", r.ExportedAt.Format(time.RFC3339))
	trust := "pinned"
	if !r.Pinned {
		trust = "by the file's own word"
	}
	line("signed with", "%s (%s)", r.KeyID, trust)
	if r.Checkpoints > 0 {
		line("checkpoints", "%d hold, the last of them over item %d", r.Checkpoints, r.Covered)
	}
	line("executions", "%d", r.Totals.Executions)
	var decisions []string
	for _, d := range slices.Sorted(maps.Keys(r.Totals.Decisions)) {
		decisions = append(decisions, fmt.Sprintf("%d %s", r.Totals.Decisions[d], cli.Printable(d)))
	}
	if len(decisions) > 0 {
		line("by decision", "%s", strings.Join(decisions, ", "))
	}
	for _, n := range r.Notes() {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const progressEvery = 2 * time.Second

// progress reports at intervals how much of a long file was read, and stops the reading when the context ends.
type progress struct {
	ctx         context.Context
	in          io.Reader
	out         io.Writer
	total, done int64
	next        time.Time
}

func (p *progress) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, errors.New("stopped")
	}
	n, err := p.in.Read(b)
	p.done += int64(n)
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(progressEvery)
		if p.total > 0 {
			fmt.Fprintf(p.out, "%d of %d MB read (%d %%)\n", p.done>>20, p.total>>20, 100*p.done/p.total)
		} else {
			fmt.Fprintf(p.out, "%d MB read\n", p.done>>20)
		}
	}
	return n, err
}
