package wellknown

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// DirectoryPath is where receivers find the public keys.
const DirectoryPath = "/.well-known/http-message-signatures-directory"

const (
	directoryType = "application/http-message-signatures-directory+json"
	directoryPage = 1000
)

// jwk is an Ed25519 public key (RFC 8037).
//
// Its kid is the thumbprint of the key, as the directory draft requires. Deliveries carry the secret's id as their keyid
// instead: receivers have pinned it, and shared secrets have no thumbprint. The member keyid links the two.
type jwk struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	ID        string `json:"kid"`
	KeyID     string `json:"keyid"` // keyid of the signatures on deliveries
	X         string `json:"x"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	NotBefore int64  `json:"nbf,omitempty"`
	Expires   int64  `json:"exp,omitempty"`
}

type directory struct {
	cfg    Config
	signer *directorySigner
}

func newDirectory(cfg Config) *directory {
	return &directory{cfg, &directorySigner{cfg: cfg, recent: map[[sha256.Size]byte]directorySignatures{}}}
}

// ServeHTTP returns all live keys in pages, with ?keyid= the one key with a delivery's keyid, or with ?environment= those of an environment. ?kid= is the older spelling
// of ?keyid=.
func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query, err := httpapi.ReadQuery(r.URL, nil) // caches may add parameters of their own
	if err != nil {
		d.cfg.Problems.Write(w, r, err)
		return
	}
	var secrets []godwit.Secret
	switch {
	case query.Has("keyid"):
		secrets, err = d.one(r, query.Get("keyid"))
	case query.Has("kid"):
		secrets, err = d.one(r, query.Get("kid"))
	case query.Has("environment"):
		secrets, err = d.environment(r, query.Get("environment"))
	default:
		secrets, err = d.some(w, r, query.Get("after"))
	}
	if err != nil {
		d.cfg.Problems.Write(w, r, err)
		return
	}
	body, err := json.Marshal(map[string][]jwk{"keys": jwks(secrets)})
	if err != nil {
		d.cfg.Problems.Write(w, r, err)
		return
	}
	body = append(body, '\n')
	d.signer.sign(w, r, secrets, body)
	w.Header().Set("Content-Type", directoryType)
	// Old keys go on signing for the overlap of a rotation, and receivers ask again when they see a new keyid, so caching
	// for minutes is safe.
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", directoryAge/time.Second))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Write(body)
}

func (d *directory) one(r *http.Request, kid string) ([]godwit.Secret, error) {
	kid, _, _ = strings.Cut(kid, "/") // the part after the slash names the event's producer, not another key
	id, err := godwit.ParseSecretID(kid)
	if err != nil {
		return nil, problem.NotFound.With("there is no such key")
	}
	s, err := d.cfg.Keys.PublicKey(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if !s.ExpiresAt.IsZero() && !d.cfg.Now().Before(s.ExpiresAt) {
		return nil, store.ErrNotFound
	}
	return []godwit.Secret{*s}, nil
}

// environment returns the keys of the environment with an id that have not expired.
func (d *directory) environment(r *http.Request, named string) ([]godwit.Secret, error) {
	id, err := godwit.ParseEnvironmentID(named)
	if err != nil || id.IsZero() {
		return nil, problem.NotFound.With("there is no environment with this id")
	}
	keys, err := d.cfg.Keys.EnvironmentKeys(r.Context(), id)
	if err != nil {
		return nil, err
	}
	now := d.cfg.Now()
	return slices.DeleteFunc(keys, func(s godwit.Secret) bool { return !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt) }), nil
}

func (d *directory) some(w http.ResponseWriter, r *http.Request, after string) ([]godwit.Secret, error) {
	var from godwit.SecretID
	if after != "" {
		var err error
		if from, err = godwit.ParseSecretID(after); err != nil {
			return nil, problem.InvalidRequest.In("after", "must be a key's id")
		}
	}
	secrets, err := d.cfg.Keys.PublicKeys(r.Context(), d.cfg.Now(), from, directoryPage+1)
	if err != nil {
		return nil, err
	}
	if len(secrets) > directoryPage {
		secrets = secrets[:directoryPage]
		last := secrets[directoryPage-1].ID.String()
		w.Header().Set("Link", "<"+d.cfg.Problems.DocumentationURL(DirectoryPath)+"?after="+last+`>; rel="next"`)
	}
	return secrets, nil
}

func jwks(secrets []godwit.Secret) []jwk {
	keys := make([]jwk, 0, len(secrets))
	for i := range secrets {
		s := &secrets[i]
		k := jwk{
			KeyType: "OKP", Curve: "Ed25519", ID: Thumbprint(s.PublicKey), KeyID: s.ID.String(), X: base64.RawURLEncoding.EncodeToString(s.PublicKey),
			Use: "sig", Algorithm: "ed25519",
		}
		if !s.NotBefore.IsZero() {
			k.NotBefore = s.NotBefore.Unix()
		}
		if !s.ExpiresAt.IsZero() {
			k.Expires = s.ExpiresAt.Unix()
		}
		keys = append(keys, k)
	}
	return keys
}
