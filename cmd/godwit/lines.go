package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/godwit-hq/godwit/client"
)

// palette colours text for a terminal, and leaves other output plain.
type palette struct{ on bool }

func newPalette(w io.Writer) palette {
	f, ok := w.(*os.File)
	return palette{on: ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())}
}

func (p palette) paint(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string { return p.paint("1", s) }

func (p palette) outcome(outcome, s string) string {
	switch outcome {
	case "accepted":
		return p.paint("32", s)
	case "transient":
		return p.paint("33", s)
	case "terminal":
		return p.paint("31", s)
	}
	return s
}

// streamEnded reports that a stream brings no more attempts. The cause is io.EOF if the server ended it or its connection closed.
type streamEnded struct{ cause error }

func (e *streamEnded) Error() string { return "follow attempts: " + e.cause.Error() }
func (e *streamEnded) Unwrap() error { return e.cause }

// follow prints attempts until the stream ends; the error is a *streamEnded then. It returns nil when the output is closed or the
// command has to stop.
func follow(env *environment, attempts *client.AttemptStream, asJSON bool) error {
	p := newPalette(env.stdout)
	for {
		a, err := attempts.Next()
		if err != nil && env.ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return &streamEnded{err}
		}
		if asJSON {
			_, err = fmt.Fprintf(env.stdout, "%s\n", maskURL(a))
		} else {
			_, err = fmt.Fprintln(env.stdout, attemptLine(p, a))
		}
		if errors.Is(err, syscall.EPIPE) {
			return nil // the reader has closed the output
		}
		if err != nil {
			return err
		}
	}
}

// maskURL encodes an attempt without the query of its endpoint's URL, which may hold a credential. The log shows no URL at
// all.
func maskURL(a *client.Attempt) []byte {
	before, _, found := strings.Cut(a.URL, "?")
	if !found {
		return a.Raw
	}
	var record map[string]json.RawMessage
	masked, err := json.Marshal(before + "?***")
	if err != nil || json.Unmarshal(a.Raw, &record) != nil {
		return []byte("{}")
	}
	record["url"] = masked
	line, err := json.Marshal(record)
	if err != nil {
		return []byte("{}")
	}
	return line
}

// attemptLine describes an attempt in one line, with aligned columns.
func attemptLine(p palette, a *client.Attempt) string {
	answer := a.Reason
	if a.Status != 0 {
		answer = fmt.Sprint(a.Status)
		if a.Outcome != "accepted" && a.Reason != "" && a.Reason != "status" {
			answer += " " + a.Reason
		}
	}
	next := ""
	switch {
	case a.NextAt != nil:
		next = "again in " + max(a.NextAt.Sub(a.StartedAt).Round(10*time.Millisecond), 0).String()
	case a.DeliveryStatus != "" && a.DeliveryStatus != "accepted":
		next = a.DeliveryStatus
	}
	line := fmt.Sprintf("%s  %-22s #%-3d %-9s %-26s %8s  %-17s %s",
		a.StartedAt.Local().Format("15:04:05.000"), clip(a.EventType, 22), a.N, a.Outcome, clip(answer, 26),
		fmt.Sprintf("%.1fms", a.DurationMS), next, shortID(a.EventID))
	return p.outcome(a.Outcome, strings.TrimRight(line, " "))
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-1] + "…"
}

// shortID keeps the part of an id that distinguishes events of a few minutes.
func shortID(id string) string {
	if len(id) < 12 {
		return id
	}
	return id[:4] + "…" + id[len(id)-8:]
}

// printJSON writes a value on a line of its own.
func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
