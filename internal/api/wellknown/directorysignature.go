package wellknown

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
)

const (
	directoryTag = "http-message-signatures-directory"
	// maxSignatures bounds the header fields: many clients read no more than 16 KiB of them, and a signature takes about 370 bytes.
	maxSignatures = 16
	directoryAge  = 5 * time.Minute // how long a response may be cached
)

// Thumbprint is the RFC 7638 thumbprint of an Ed25519 key, which is its kid in the directory.
func Thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A directorySigner signs the directory. It keeps signatures for a minute: a request without an API key must not cost up to
// maxSignatures decryptions each time.
type directorySigner struct {
	cfg Config

	mu     sync.Mutex
	recent map[[sha256.Size]byte]directorySignatures // by the digest of the body
}

type directorySignatures struct {
	at                 time.Time
	inputs, signatures string
}

const (
	signatureAge = time.Minute // how long a signature is kept; much less than its validity
	maxRecent    = 256         // bound on the kept signatures
	readTimeout  = 10 * time.Second
)

// sign adds a signature by each key of the response (draft-meunier-http-message-signatures-directory), up to maxSignatures.
// It covers the digest of the body and the host that the request named, and is made for the server's own host only: otherwise
// another host could pass on requests and show our keys as its own. If a private key cannot be decrypted, sign leaves out its
// signature and the response stays valid.
func (s *directorySigner) sign(w http.ResponseWriter, r *http.Request, secrets []godwit.Secret, body []byte) {
	sum := sha256.Sum256(body)
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	w.Header().Set("Content-Digest", digest)
	if normalHost(r.Host) != normalHost(s.cfg.Authority) {
		return
	}
	made := s.kept(sum)
	if made.at.IsZero() {
		var readable bool
		if made, readable = s.make(r.Context(), secrets, digest); readable {
			s.keep(sum, made)
		}
	}
	if made.inputs != "" {
		w.Header().Set("Signature-Input", made.inputs)
		w.Header().Set("Signature", made.signatures)
	}
}

// make signs with each key. readable is false if the store could not be read: then signatures are missing that the next request
// may get. It goes on when the client disconnects, because other clients use the result too.
func (s *directorySigner) make(ctx context.Context, secrets []godwit.Secret, digest string) (made directorySignatures, readable bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	readable = true
	var inputs, signatures []string
	now := s.cfg.Now()
	for i := range secrets[:min(len(secrets), maxSignatures)] {
		private, err := s.private(ctx, &secrets[i])
		if err != nil {
			readable = readable && !errors.Is(err, errNotRead)
			s.cfg.Problems.Log.Warn("key directory served without a signature", "key", secrets[i].ID.String(), "error", err)
			continue
		}
		params := fmt.Sprintf(`("@authority";req "content-digest");created=%d;expires=%d;alg="ed25519";keyid="%s";tag="%s"`,
			now.Unix(), now.Add(2*directoryAge).Unix(), Thumbprint(secrets[i].PublicKey), directoryTag)
		base := `"@authority";req: ` + normalHost(s.cfg.Authority) + "\n" + `"content-digest": ` + digest + "\n" + `"@signature-params": ` + params
		label := fmt.Sprintf("sig%d", i+1)
		inputs = append(inputs, label+"="+params)
		signatures = append(signatures, label+"=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(base)))+":")
	}
	return directorySignatures{now, strings.Join(inputs, ", "), strings.Join(signatures, ", ")}, readable
}

// kept returns the signatures of a body that were made within signatureAge.
func (s *directorySigner) kept(body [sha256.Size]byte) directorySignatures {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.recent[body]
	if s.cfg.Now().Sub(made.at).Abs() > signatureAge {
		return directorySignatures{}
	}
	return made
}

func (s *directorySigner) keep(body [sha256.Size]byte, made directorySignatures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) >= maxRecent {
		clear(s.recent)
	}
	s.recent[body] = made
}

var errNotRead = errors.New("the signing key could not be read")

// private decrypts the private key of a public one. The list of public keys does not include the private keys.
func (s *directorySigner) private(ctx context.Context, public *godwit.Secret) (ed25519.PrivateKey, error) {
	secrets, err := s.cfg.Keys.Secrets(ctx, public.TenantID, public.EndpointID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRead, err)
	}
	for i := range secrets {
		if secrets[i].ID != public.ID {
			continue
		}
		seed, err := s.cfg.Ring.Open(secrets[i].Sealed, keyring.ForSecret(public.ID))
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

// normalHost returns a host in lower case and without the scheme's default port (RFC 9421, section 2.2.3). Behind a proxy the
// scheme is unknown, so both default ports are dropped.
func normalHost(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(host), ":443"), ":80")
}
