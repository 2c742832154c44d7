package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/trace"
)

var evidenceKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))

// evidenceChain returns the evidence of a command that was executed once and repeated, of one that conflicts with it, and
// a checkpoint.
func evidenceChain(t testing.TB) []evidence.Item {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	entries := []evidence.Entry{
		{Type: evidence.Reserved, Decision: "first_seen", CommandID: "cmd_1", SubmittedID: "cmd_1", Key: "key-1", Command: "invoice.refund", Actor: "anna", OutcomeStatus: "in_progress"},
		{Type: evidence.ExecutedOK, Decision: "first_seen", Executed: true, CommandID: "cmd_1", SubmittedID: "cmd_1", Key: "key-1", Command: "invoice.refund", Actor: "anna", OutcomeStatus: "executed", OutcomeRef: "out_1"},
		{Type: evidence.Observation, Decision: "duplicate_replayed", CommandID: "cmd_1", SubmittedID: "cmd_2", Key: "key-1", OutcomeStatus: "executed", OutcomeRef: "out_1", Actor: "\x1b[31mred"},
		{Type: evidence.RejectedTy, Decision: "conflict_rejected", CommandID: "cmd_1", SubmittedID: "cmd_3", Key: "key-1", Reason: "idempotency_conflict"},
		{Type: evidence.ExecutedOK, Decision: "first_seen", Executed: true, CommandID: "cmd_4", SubmittedID: "cmd_4", Key: "key-2", OutcomeStatus: "executed"},
		{Type: evidence.Delivered, CommandID: "cmd_4", Key: "key-2", EventID: "evt_1", DeliveryID: "del_1", EndpointID: "sub_1", ResponseStatus: 204},
	}
	var items []evidence.Item
	head := evidence.Head{Tenant: "ten_a"}
	add := func(e evidence.Entry) {
		e.At = at.Add(time.Duration(len(items)) * time.Second)
		it, err := evidence.Link(head, "ten_a", e)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, it)
		head = it.Head()
	}
	for _, e := range entries {
		add(e)
	}
	signedAt := at.Add(time.Duration(len(items)) * time.Second)
	c, err := evidence.Sign(evidenceKey, head, signedAt)
	if err != nil {
		t.Fatal(err)
	}
	add(c.Entry(signedAt))
	return items
}

func writeEvidence(w io.Writer, items []evidence.Item, from int64) error {
	head := items[len(items)-1].Head()
	x, err := evidence.NewExporter(w, evidenceKey, "ten_a", head, from, head.At)
	if err != nil {
		return err
	}
	return errors.Join(x.Append(items[from-1:]...), x.Close())
}

// The scripts in testdata/evidence find a chain in chain.ndjson and its public key in chain.pub. The script command
// "server" starts a server that exports the chain.
func TestEvidenceScripts(t *testing.T) {
	trace.Covers(t, "IDS-EVD-8")
	items := evidenceChain(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/evidence",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("COLUMNS", "110")
			var file bytes.Buffer
			if err := writeEvidence(&file, items, 1); err != nil {
				return err
			}
			public := evidenceKey.Public().(ed25519.PublicKey)
			text, err := evidence.MarshalPublicKey(public)
			if err != nil {
				return err
			}
			e.Setenv("PUBLIC_KEY", base64.StdEncoding.EncodeToString(public))
			e.Setenv("KNOWN", fmt.Sprintf("%d=%s", items[2].Seq, items[2].Hash))
			return errors.Join(
				os.WriteFile(filepath.Join(e.WorkDir, "chain.ndjson"), file.Bytes(), 0o600),
				os.WriteFile(filepath.Join(e.WorkDir, "chain.pub"), text, 0o600),
				os.WriteFile(filepath.Join(e.WorkDir, "key.json"), keyObject(evidence.KeyID(public)), 0o600),
				os.WriteFile(filepath.Join(e.WorkDir, "wrong.json"), keyObject("sha256:00"), 0o600),
			)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// edit FILE OLD NEW writes the chain with the first OLD replaced.
			"edit": func(ts *testscript.TestScript, _ bool, args []string) {
				if len(args) != 3 || !strings.Contains(ts.ReadFile("chain.ndjson"), args[1]) {
					ts.Fatalf("usage: edit FILE OLD NEW")
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(ts.ReadFile("chain.ndjson"), args[1], args[2], 1)), 0o600))
			},
			// server whole|changed|cut starts a server that exports the chain in this condition.
			"server": func(ts *testscript.TestScript, _ bool, args []string) {
				srv := httptest.NewServer(evidenceServer(items, args[0]))
				ts.Defer(srv.Close)
				ts.Setenv("GODWIT_URL", srv.URL)
				ts.Setenv("GODWIT_KEY", "gdw_test")
			},
		},
	})
}

// keyObject returns the key as the server shows it in JSON.
func keyObject(id string) []byte {
	public := evidenceKey.Public().(ed25519.PublicKey)
	return fmt.Appendf(nil, `{"algorithm":"ed25519","key_id":%q,"public_key":%q}`, id, base64.StdEncoding.EncodeToString(public))
}

func evidenceServer(items []evidence.Item, how string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ids/v1/evidence/key", func(w http.ResponseWriter, r *http.Request) {
		public := evidenceKey.Public().(ed25519.PublicKey)
		switch text, err := evidence.MarshalPublicKey(public); {
		case err != nil:
			panic(err)
		case how == "changed":
			fmt.Fprint(w, "no key")
		case how == "cut": // an older server
			_, _ = w.Write(keyObject(evidence.KeyID(public)))
		case r.Header.Get("Accept") == "application/x-pem-file":
			_, _ = w.Write(text)
		}
	})
	mux.HandleFunc("GET /ids/v1/evidence/export", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer gdw_test" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		from, err := strconv.ParseInt(r.URL.Query().Get("from_seq"), 10, 64)
		if err != nil || from > int64(len(items)) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var file bytes.Buffer
		if err := writeEvidence(&file, items, from); err != nil {
			panic(err)
		}
		out := file.Bytes()
		if how == "changed" {
			out = bytes.Replace(out, []byte("anna"), []byte("otto"), 1)
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		if how == "cut" {
			_, _ = w.Write(out[:len(out)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(out)
	})
	return mux
}

func TestProgressIsToldOfLongFiles(t *testing.T) {
	var out strings.Builder
	p := &progress{ctx: t.Context(), in: strings.NewReader("0123456789"), out: &out, total: 10}
	if _, err := p.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if out.String() != "0 of 0 MB read (50 %)\n" { // the second report came too soon after the first
		t.Errorf("told %q", out.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.ctx = ctx
	if _, err := p.Read(make([]byte, 5)); err == nil {
		t.Error("went on reading after it was stopped")
	}
}
