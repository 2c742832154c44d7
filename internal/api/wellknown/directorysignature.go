package wellknown

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
)

const (
	directoryTag = "http-message-signatures-directory"
	// maxSignatures bounds the header fields: many clients read no more than 16 KiB of them, and a signature takes about 350 bytes.
	maxSignatures = 16
	directoryAge  = 5 * time.Minute // how long a response may be cached
)

// Thumbprint is the RFC 7638 thumbprint of an Ed25519 key, which is its kid in the directory.
func Thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// sign adds a signature by each key of the response (draft-meunier-http-message-signatures-directory), up to maxSignatures.
// It covers the authority that the request named: the holder of each private key vouches for this directory at this host. If
// a private key cannot be decrypted, sign leaves out its signature and the response stays valid.
func (d *directory) sign(w http.ResponseWriter, r *http.Request, secrets []godwit.Secret) {
	var inputs, signatures []string
	created := d.cfg.Now().Unix()
	for i := range secrets[:min(len(secrets), maxSignatures)] {
		private, err := d.private(r.Context(), &secrets[i])
		if err != nil {
			d.cfg.Problems.Log.Warn("key directory served without a signature", "key", secrets[i].ID.String(), "error", err)
			continue
		}
		params := fmt.Sprintf(`("@authority";req);created=%d;expires=%d;alg="ed25519";keyid="%s";tag="%s"`,
			created, created+int64(2*directoryAge/time.Second), Thumbprint(secrets[i].PublicKey), directoryTag)
		base := `"@authority";req: ` + authority(r) + "\n" + `"@signature-params": ` + params
		label := fmt.Sprintf("sig%d", i+1)
		inputs = append(inputs, label+"="+params)
		signatures = append(signatures, label+"=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(base)))+":")
	}
	if len(inputs) > 0 {
		w.Header().Set("Signature-Input", strings.Join(inputs, ", "))
		w.Header().Set("Signature", strings.Join(signatures, ", "))
	}
}

// private decrypts the private key of a public one. The list of public keys does not include the private keys.
func (d *directory) private(ctx context.Context, public *godwit.Secret) (ed25519.PrivateKey, error) {
	secrets, err := d.cfg.Keys.Secrets(ctx, public.TenantID, public.EndpointID)
	if err != nil {
		return nil, err
	}
	for i := range secrets {
		if secrets[i].ID != public.ID {
			continue
		}
		seed, err := d.cfg.Ring.Open(secrets[i].Sealed, keyring.ForSecret(public.ID))
		if err != nil {
			return nil, fmt.Errorf("open signing key %s: %w", public.ID, err)
		}
		if len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("signing key %s has %d bytes, want %d", public.ID, len(seed), ed25519.SeedSize)
		}
		return ed25519.NewKeyFromSeed(seed), nil
	}
	return nil, fmt.Errorf("signing key %s is gone", public.ID)
}

// authority returns the host that the request named, in lower case and without the scheme's default port (RFC 9421, section
// 2.2.3). Behind a proxy the scheme is unknown, so both default ports are dropped.
func authority(r *http.Request) string {
	host := strings.ToLower(r.Host)
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}
