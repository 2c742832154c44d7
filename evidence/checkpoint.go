package evidence

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// checkpointContext keeps a signature over a link from being taken for one over anything else.
const checkpointContext = "godwit-evidence-checkpoint/1"

var signatureLength = base64.StdEncoding.EncodedLen(ed25519.SignatureSize)

// SigningInput is what a checkpoint's signature is over: the canonical JSON of a context, the link and the time.
func SigningInput(tenant string, seq int64, hash string, at time.Time) []byte {
	b := append(make([]byte, 0, 256), '{')
	b = appendTime(b, "at", instant(at))
	b = appendMust(b, "context", checkpointContext)
	b = appendMust(b, "hash", hash)
	b = appendInt(b, "seq", seq)
	b = appendMust(b, "tenant", tenant)
	return append(b, '}')
}

// Sign makes a checkpoint of the link. It has its place in the chain once its Entry, with the same time, is linked; items that
// were appended in between do no harm.
func Sign(key ed25519.PrivateKey, head Head, at time.Time) (Checkpoint, error) {
	if len(key) != ed25519.PrivateKeySize {
		return Checkpoint{}, errNoKey
	}
	if head.Seq < 1 || !isHash(head.Hash) {
		return Checkpoint{}, errors.New("sign checkpoint: the chain is empty")
	}
	signature := ed25519.Sign(key, SigningInput(head.Tenant, head.Seq, head.Hash, at))
	return Checkpoint{
		Seq: head.Seq, Hash: head.Hash, KeyID: KeyID(publicOf(key)), Signature: base64.StdEncoding.EncodeToString(signature),
	}, nil
}

// Entry is the checkpoint as evidence, with the time that it was signed with.
func (c Checkpoint) Entry(at time.Time) Entry {
	return Entry{Type: Signed, At: instant(at), Checkpoint: &c}
}

// holds reports whether the signature is right.
func (c *Checkpoint) holds(key ed25519.PublicKey, tenant string, at time.Time) bool {
	signature, ok := decodeBase64(c.Signature, ed25519.SignatureSize)
	return ok && ed25519.Verify(key, SigningInput(tenant, c.Seq, c.Hash, at), signature)
}

// KeyID is the fingerprint of a public key: "sha256:" and the hex SHA-256 of its 32 bytes.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hashPrefix + hex.EncodeToString(sum[:])
}

var errNoKey = errors.New("it is not an Ed25519 private key")

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey {
	return ed25519.PublicKey(key[ed25519.SeedSize:])
}

// MarshalPublicKey writes a public key as PEM, the form to keep and to pin.
func MarshalPublicKey(key ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("write public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// ParsePublicKey reads an Ed25519 public key: PEM, the base64 of its 32 bytes, or the JSON object of GET /ids/v1/evidence/key.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		return parseKeyObject(text)
	}
	if block, rest := pem.Decode([]byte(text)); block != nil {
		if len(strings.TrimSpace(string(rest))) > 0 {
			return nil, errors.New("there is more than one key")
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read public key: %w", err)
		}
		key, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, errors.New("it is a public key, but not an Ed25519 one")
		}
		return key, nil
	}
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.Strict().DecodeString(plain)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("it is neither PEM, nor the JSON that the server tells its key in, nor the base64 of 32 bytes")
	}
	return raw, nil
}

// parseKeyObject reads a key as the server tells it. The key id has to be the key's own.
func parseKeyObject(text string) (ed25519.PublicKey, error) {
	var told struct {
		Algorithm string `json:"algorithm"`
		KeyID     string `json:"key_id"`
		PublicKey string `json:"public_key"`
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		return nil, errors.New("it is not valid JSON")
	}
	raw, ok := decodeBase64(told.PublicKey, ed25519.PublicKeySize)
	switch {
	case told.Algorithm != "" && told.Algorithm != "ed25519":
		return nil, errors.New("algorithm: it is not a key for ed25519")
	case !ok:
		return nil, errors.New("public_key: it is not the base64 of 32 bytes")
	case told.KeyID != "" && told.KeyID != KeyID(raw):
		return nil, errors.New("key_id: it is not the id of this public_key")
	}
	return raw, nil
}

// decodeBase64 accepts only the canonical encoding: decoders ignore line ends and spare bits.
func decodeBase64(text string, size int) ([]byte, bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, err == nil && len(raw) == size && base64.StdEncoding.EncodeToString(raw) == text
}
