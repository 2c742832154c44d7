package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

type evidenceExportCommand struct {
	From       int64  `name:"from" help:"Sequence number to begin with, such as one more than the last of an earlier export." default:"1" placeholder:"SEQ"`
	Output     string `name:"output" short:"o" help:"Write to a file, which must not exist yet. Defaults to standard output." placeholder:"FILE"`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (evidenceExportCommand) Help() string {
	return `The file is verified as it arrives; the command ends with 1 when it is broken, and the file is kept, being evidence. A
file that was not received to its end is removed. The last hash is printed: note it where the server's operator cannot change
it, and a later export can be held against it (godwit evidence verify --known).

Examples:

    GODWIT_KEY=gdw_… godwit evidence export --output march.ndjson
    godwit evidence export --from 20346 --output april.ndjson
    godwit evidence export | gzip > march.ndjson.gz`
}

func (c *evidenceExportCommand) Run(env *environment) error {
	if c.From < 1 {
		return errors.New("--from: the first item has number 1")
	}
	cl, err := c.client(env)
	if err != nil {
		return err
	}
	body, err := cl.ExportEvidence(env.ctx, c.From)
	if err != nil {
		return fmt.Errorf("export evidence: %w", err)
	}
	defer body.Close()
	in := &progress{ctx: env.ctx, in: body, out: env.stderr, next: time.Now().Add(progressEvery)}
	var report evidence.Report
	if c.Output == "" {
		report, err = receive(in, env.stdout)
	} else {
		report, err = receiveFile(in, c.Output)
	}
	if err != nil {
		return fmt.Errorf("export evidence: %w", err)
	}
	if report.Broken != nil {
		return fmt.Errorf("the evidence is broken at %w", report.Broken)
	}
	fmt.Fprintf(env.stderr, "%d items, up to %d; the last hash is %s\n", report.Items, report.To, report.ToHash)
	return nil
}

// receive copies the input to the output and verifies it. The error is one of reading or writing.
func receive(in io.Reader, out io.Writer) (evidence.Report, error) {
	w := &keepsError{w: out}
	report, err := evidence.Verify(io.TeeReader(in, w), evidence.Options{})
	if w.err != nil {
		return report, w.err
	}
	if report.Broken != nil { // the rest of a broken file is evidence, too
		_, err = io.Copy(w, in)
	}
	return report, err
}

// keepsError distinguishes a failure to write from a failure to read.
type keepsError struct {
	w   io.Writer
	err error
}

func (k *keepsError) Write(b []byte) (int, error) {
	n, err := k.w.Write(b)
	if err != nil {
		k.err = err
	}
	return n, err
}

func receiveFile(in io.Reader, name string) (evidence.Report, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return evidence.Report{}, err
	}
	report, err := receive(in, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(name)
	}
	return report, err
}
