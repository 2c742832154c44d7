package relay

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
)

// TestSecretsOfSources are shown once, kept encrypted, and rotate without a gap.
func TestSecretsOfSources(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.Endpoint(r.sink.URL("/to"))
		s := r.Source("upstream")
		old := s
		if len(s.Issued.Secret) < 32 {
			t.Fatalf("issued %+v", s.Issued)
		}
		works := func(s source, want int) {
			t.Helper()
			r.want(r.send(delivery{Path: s.Path, Key: key(s.Issued.ID), Sign: bearer(s)}), want)
		}
		works(s, 200)
		var next source
		r.Must(apptest.Call{Path: "/v1/sources/" + s.ID + "/rotate", Body: apptest.Fields{"overlap_seconds": 60}}, &next)
		works(old, 200)
		works(next, 200)
		r.Advance(61 * time.Second)
		works(old, 401)
		works(next, 200)
		for _, path := range []string{"/v1/sources", "/v1/sources/" + s.ID, "/v1/sources/" + s.ID + "/rejections"} {
			text := string(r.Must(apptest.Call{Path: path}, nil).Body)
			if strings.Contains(text, old.Issued.Secret) || strings.Contains(text, next.Issued.Secret) {
				t.Errorf("GET %s shows a secret", path)
			}
		}
		stored, err := r.App.Store().Source(context.Background(), r.Tenant, mustSource(t, s.ID))
		if err != nil || strings.Contains(string(stored.Sealed), next.Issued.Secret) {
			t.Errorf("stored as %q, %v", stored.Sealed, err)
		}
		// A new key ring opens it after re-encryption, without the old key.
		both, err := keyring.Parse(keyring.Generate("new") + "\n" + r.Config.Keyring)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := management.Reencrypt(context.Background(), r.App.Store(), both, nil); err != nil || done.Resealed < 2 {
			t.Errorf("resealed %+v, %v", done, err)
		}
		again, err := r.App.Store().Source(context.Background(), r.Tenant, stored.ID)
		if err != nil || both.Stale(again.Sealed) {
			t.Errorf("still sealed with the old key: %v", err)
		}
	})
}

func mustSource(t testing.TB, text string) godwit.SourceID {
	t.Helper()
	id, err := godwit.ParseSourceID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestPasswordsRotate: a user name stays the same while its password is replaced. A deleted source keeps no credentials.
func TestPasswordsRotate(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.Endpoint(r.sink.URL("/to"))
	s := r.Source("basic", apptest.Fields{"scheme": "basic", "credentials": []apptest.Fields{{"id": "ada", "secret": "the first password"}}})
	login := func(password string, want int) {
		t.Helper()
		r.want(r.send(delivery{Path: s.Path, Key: key(password), Sign: func(q *http.Request, _ []byte) { q.SetBasicAuth("ada", password) }}), want)
	}
	rotate := apptest.Call{Path: "/v1/sources/" + s.ID + "/rotate", Body: apptest.Fields{"overlap_seconds": 60, "credential": apptest.Fields{"id": "ada", "secret": "the second password"}}}
	r.Must(rotate, nil)
	login("the first password", 200)
	login("the second password", 200)
	if a := r.Call(rotate); a.Status != 422 {
		t.Errorf("the same credential twice: %d %s", a.Status, a.Body)
	}
	r.Advance(61 * time.Second)
	login("the first password", 401)
	login("the second password", 200)
	r.Must(apptest.Call{Method: "DELETE", Path: "/v1/sources/" + s.ID}, nil)
	rows, err := r.App.Store().SealedRows(context.Background(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if strings.Contains(row.Bound, s.ID) {
			t.Errorf("credentials of a deleted source are kept: %s", row.Ref)
		}
	}
}

// TestSourcesThatAreRefused tells what is wrong.
func TestSourcesThatAreRefused(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.Source("taken")
	for name, c := range map[string]struct {
		fields apptest.Fields
		want   int
	}{
		"a name that is taken":           {apptest.Fields{"name": "taken"}, 409},
		"a name with a slash":            {apptest.Fields{"name": "a/b"}, 422},
		"an unknown scheme":              {apptest.Fields{"scheme": "none"}, 422},
		"a vendor without secret":        {apptest.Fields{"scheme": "stripe"}, 422},
		"a secret where a key is wanted": {apptest.Fields{"scheme": "paypal", "settings": apptest.Fields{"webhook_id": "w"}, "credentials": []apptest.Fields{{"secret": "x"}}}, 422},
		"a key that is none":             {apptest.Fields{"scheme": "eds", "credentials": []apptest.Fields{{"id": "k", "secret": "not base64"}}}, 422},
		"adopt without a delivery id":    {apptest.Fields{"adopt": true}, 422},
		"client certificates":            {apptest.Fields{"scheme": "mtls", "credentials": []apptest.Fields{{"public_key": strings.Repeat("ab", 32)}}}, 422},
		"keeping Authorization":          {apptest.Fields{"keep_headers": []string{"authorization"}}, 422},
		"keeping a signature":            {apptest.Fields{"keep_headers": []string{"X-Hub-Signature-256"}}, 422},
		"keeping the key":                {apptest.Fields{"keep_headers": []string{"Idempotency-Key"}}, 422},
		"keeping a token":                {apptest.Fields{"keep_headers": []string{"X-Api-Token"}}, 422},
		"a type that is none":            {apptest.Fields{"event_type": apptest.Fields{"fixed": "a b"}}, 422},
		"an unknown member":              {apptest.Fields{"secrets": []string{"x"}}, 400},
		"a label like ours":              {apptest.Fields{"scheme": "eds", "settings": apptest.Fields{"end_to_end": "sig1"}}, 422},
	} {
		body := apptest.Fields{"name": "fresh", "scheme": "bearer"}
		for k, v := range c.fields {
			body[k] = v
		}
		if a := r.Call(apptest.Call{Path: "/v1/sources", Body: body}); a.Status != c.want {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	s := r.Source("fresh")
	for name, patch := range map[string]apptest.Fields{
		"another scheme": {"scheme": "basic"}, "a taken name": {"name": "taken"}, "credentials": {"credentials": []apptest.Fields{{"secret": "x"}}},
	} {
		if a := r.Call(apptest.Call{Method: "PATCH", Path: "/v1/sources/" + s.ID, Body: patch}); a.Status < 400 || a.Status > 499 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	_, stranger := r.NewTenant("stranger", godwit.AllScopes...)
	for _, path := range []string{"", "/acknowledgments", "/rejections"} {
		if a := r.Call(apptest.Call{Path: "/v1/sources/" + s.ID + path, Key: stranger}); a.Status != 404 {
			t.Errorf("a stranger reads %q: %d", path, a.Status)
		}
	}
}

// TestClientCertificates: an upstream may be known by the certificate it shows.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	certPEM, keyPEM := apptest.ServerCertificate(t, "127.0.0.1")
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, text := range map[string]string{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Default()
	cfg.TLS.Cert, cfg.TLS.Key = certFile, keyFile
	cfg.Listen, cfg.Data, cfg.Node, cfg.ClientCertificates = "127.0.0.1:0", filepath.Join(dir, "data"), "tls", true
	cfg.Keyring = app.GenerateRing()
	a, err := app.New(context.Background(), cfg, app.Dependencies{NoLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-a.Started()
	tenant, err := app.TenantByName(ctx, a.Management(), "test")
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := a.Management().Keys.Create(ctx, nil, tenant.ID, management.KeySpec{Name: "test", Scopes: godwit.AllScopes})
	if err != nil {
		t.Fatal(err)
	}
	clientPEM, clientKey := apptest.ClientCertificate(t, "upstream")
	block, _ := pem.Decode([]byte(clientPEM))
	print := sha256.Sum256(block.Bytes)
	pair, err := tls.X509KeyPair([]byte(clientPEM), []byte(clientKey))
	if err != nil {
		t.Fatal(err)
	}
	call := func(path, body, auth string, certificates ...tls.Certificate) (int, string) {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: apptest.CAPool(t), Certificates: certificates}}}
		q, err := http.NewRequest("POST", a.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Idempotency-Key", quoted(key(path[len(path)-5:])))
		if auth != "" {
			q.Header.Set("Authorization", "Bearer "+auth)
		}
		resp, err := c.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Location")
	}
	status, location := call("/v1/sources", `{"name":"m","scheme":"mtls","event_type":{"fixed":"x.y"},"credentials":[{"public_key":"`+hex.EncodeToString(print[:])+`"}]}`, token)
	if status != 201 {
		t.Fatalf("created with %d", status)
	}
	path := "/in/" + strings.TrimPrefix(location, "/v1/sources/")
	if status, _ := call(path, `{}`, ""); status != 401 {
		t.Errorf("without a certificate: %d", status)
	}
	otherPEM, otherKey := apptest.ClientCertificate(t, "somebody else")
	other, err := tls.X509KeyPair([]byte(otherPEM), []byte(otherKey))
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := call(path, `{}`, "", other); status != 401 {
		t.Errorf("with another certificate: %d", status)
	}
	if status, _ := call(path, `{}`, "", pair); status != 502 { // authentic; no endpoint subscribes to it
		t.Errorf("with the certificate: %d", status)
	}
}
