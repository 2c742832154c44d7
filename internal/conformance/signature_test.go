package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// verify checks a captured request against a secret as its receiver would, which knows its own URL.
func verify(t testing.TB, req *apptest.Request, url string, now func() time.Time, secret apptest.Secret) error {
	t.Helper()
	v, err := httpsig.NewVerifier(httpsig.Options{
		Now:       now,
		TargetURI: func(*http.Request) string { return url },
		KeyByID: func(_ context.Context, id string) (httpsig.Key, error) {
			if id != secret.ID {
				return httpsig.Key{}, httpsig.ErrUnknownKey
			}
			return verificationKey(t, secret), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(req.Head), bytes.NewReader(req.Body))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(r, req.Body); err != nil {
		return err
	}
	return nil
}

func verificationKey(t testing.TB, secret apptest.Secret) httpsig.Key {
	t.Helper()
	var key httpsig.Key
	var err error
	if secret.Algorithm == godwit.AlgorithmEd25519 {
		key, err = httpsig.NewEd25519Verifier(secret.ID, ed25519.PublicKey(decoded(t, secret.PublicKey)))
	} else {
		key, err = httpsig.NewHMACKey(secret.ID, decoded(t, secret.Value))
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func decoded(t testing.TB, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
