package attempt

import (
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A sealedSecret holds the members of a secret that a signer is made from. Every endpoint has one in memory, most for long without a request.
type sealedSecret struct {
	id                              godwit.SecretID
	algorithm                       string
	sealed                          []byte
	createdAt, notBefore, expiresAt instant
}

// An instant is a time in microseconds, as stores keep it; 0 is the zero time.
type instant int64

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.UnixMicro())
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i))
}

func packSecrets(secrets []godwit.Secret) []sealedSecret {
	if len(secrets) == 0 {
		return nil
	}
	packed := make([]sealedSecret, len(secrets))
	for i := range secrets {
		s := &secrets[i]
		packed[i] = sealedSecret{
			s.ID, shared(s.Algorithm, godwit.AlgorithmHMAC, godwit.AlgorithmEd25519), s.Sealed, instantOf(s.CreatedAt), instantOf(s.NotBefore), instantOf(s.ExpiresAt),
		}
	}
	return packed
}

func unpackSecrets(packed []sealedSecret) []godwit.Secret {
	secrets := make([]godwit.Secret, len(packed))
	for i := range packed {
		s := &packed[i]
		secrets[i] = godwit.Secret{
			ID: s.id, Algorithm: s.algorithm, Sealed: s.sealed, CreatedAt: s.createdAt.time(), NotBefore: s.notBefore.time(), ExpiresAt: s.expiresAt.time(),
		}
	}
	return secrets
}

// shareWords replaces strings of an endpoint by constants that are equal to them: each that was read from a store takes memory of its own.
func shareWords(e *godwit.Endpoint) {
	e.Method = shared(e.Method, http.MethodPost, http.MethodPut)
	e.Status = shared(e.Status, godwit.EndpointActive, godwit.EndpointPaused, godwit.EndpointDisabled)
	e.Signing = shared(e.Signing, godwit.SigningEnvironment)
}

// shared returns the word that is equal to s, or s.
func shared[S ~string](s S, words ...S) S {
	for _, word := range words {
		if s == word {
			return word
		}
	}
	return s
}
