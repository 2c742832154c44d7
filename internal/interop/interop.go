//go:build unix

// Package interop starts receivers that verify deliveries with independent libraries: the npm package http-message-signatures
// on Node.js and the PyPI package of the same name on Python. They answer 204 to a request whose signature, digest, age and
// nonce are right and 401 to any other. The dialects have no such libraries: for them two small receivers, which share no code
// with Godwit, make the checks that their documents require.
//
//	StartNode(t) / StartPython(t)
//	   ├ install: locked packages into the user's cache directory, once per lock file
//	   ├ start the receiver on 127.0.0.1, http or https
//	   └ Receiver: SetKeys ─► stdin of the process, Next ◄─ a verdict per request
//
// The lock files are renewed in receivers/node by `npm install --package-lock-only --omit-lockfile-registry-resolved` and in
// receivers/python by the command at the top of requirements.txt.
//
// For tests only. It verifies nothing itself, and never skips: without Node.js or Python the test fails and says what to
// install.
package interop

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"io"
	"sync"
	"testing"
	"time"
)

// waitLimit limits each wait for a receiver's process.
const waitLimit = 5 * time.Minute

// Key is a key of which a receiver accepts signatures: a shared secret or a public key.
type Key struct {
	ID     string
	Secret []byte            // for hmac-sha256
	Public ed25519.PublicKey // for ed25519

	// For the receivers of dialects: the dialect, and the secret or public key in the form shown to its owner.
	Dialect string
	Text    string
}

// Verdict is a receiver's judgement of one request.
type Verdict struct {
	Accepted       bool   `json:"accepted"`
	Reason         string `json:"reason"` // in the words of the library; empty if accepted
	KeyID          string `json:"key_id"` // of the accepted signature
	Method         string `json:"method"`
	Target         string `json:"target"`
	IdempotencyKey string `json:"idempotency_key"` // the field, unparsed
	Body           string `json:"body"`            // of an accepted request, from the receivers of dialects
}

// Receiver is a running receiver.
type Receiver struct {
	Name string // Node or Python
	URL  string // without a path

	stdin  io.WriteCloser
	stderr bytes.Buffer // read only after ended is closed
	keys   chan int
	ended  chan struct{}

	mu       sync.Mutex
	verdicts []Verdict
	arrived  chan struct{} // has room for one: signals new verdicts
}

// Option changes how a receiver is started.
type Option func(*startCommand)

type startCommand struct {
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

// TLS makes the receiver serve https with a certificate for 127.0.0.1 and its key,
// both PEM files.
func TLS(certFile, keyFile string) Option {
	return func(c *startCommand) { c.Cert, c.Key = certFile, keyFile }
}

// StartNode starts the receiver on Node.js. It ends with the test.
func StartNode(t testing.TB, options ...Option) *Receiver {
	t.Helper()
	return start(t, "Node", nodeCommand(t, "receiver.cjs"), options)
}

// StartNodeDialects starts, on Node.js, a receiver that verifies the other dialects as their documents say.
func StartNodeDialects(t testing.TB, options ...Option) *Receiver {
	t.Helper()
	return start(t, "Node", nodeCommand(t, "dialects.cjs"), options)
}

// StartPython starts the receiver on Python. It ends with the test.
func StartPython(t testing.TB, options ...Option) *Receiver {
	t.Helper()
	return start(t, "Python", pythonCommand(t, "receiver.py"), options)
}

// StartPythonDialects starts, on Python, a receiver that verifies the other dialects as their documents say.
func StartPythonDialects(t testing.TB, options ...Option) *Receiver {
	t.Helper()
	return start(t, "Python", pythonCommand(t, "dialects.py"), options)
}

// SetKeys replaces the keys that the receiver knows. They are in force when it returns.
func (r *Receiver) SetKeys(t testing.TB, keys ...Key) {
	t.Helper()
	type wireKey struct {
		ID        string `json:"id"`
		Algorithm string `json:"alg"`
		Secret    []byte `json:"secret,omitempty"`
		PublicPEM string `json:"public_pem,omitempty"`
		Text      string `json:"text,omitempty"`
	}
	list := make([]wireKey, 0, len(keys))
	for _, key := range keys {
		if key.Dialect != "" {
			list = append(list, wireKey{ID: key.ID, Algorithm: key.Dialect, Text: key.Text})
			continue
		}
		if key.Public == nil {
			list = append(list, wireKey{ID: key.ID, Algorithm: "hmac-sha256", Secret: key.Secret})
			continue
		}
		der, err := x509.MarshalPKIXPublicKey(key.Public)
		if err != nil {
			t.Fatalf("set key %s: %v", key.ID, err)
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		list = append(list, wireKey{ID: key.ID, Algorithm: "ed25519", PublicPEM: string(text)})
	}
	r.send(t, map[string]any{"keys": list})
	if known := await(t, r, r.keys, "take its keys"); known != len(keys) {
		t.Fatalf("the %s receiver took %d keys of %d", r.Name, known, len(keys))
	}
}

// Next returns the oldest verdict not returned yet, and waits for one if needed. Verdicts are in the order in which the
// receiver finished the requests.
func (r *Receiver) Next(t testing.TB) Verdict {
	t.Helper()
	for {
		r.mu.Lock()
		if len(r.verdicts) > 0 {
			verdict := r.verdicts[0]
			r.verdicts = r.verdicts[1:]
			r.mu.Unlock()
			return verdict
		}
		r.mu.Unlock()
		await(t, r, r.arrived, "receive a request")
	}
}
