package identity

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// FlowLife is how long a person may take at the provider.
const FlowLife = 10 * time.Minute

// A Ring seals what a browser keeps between two requests. All nodes have the same.
type Ring interface {
	Seal(plain []byte, bound string) []byte
	Open(sealed []byte, bound string) ([]byte, error)
}

// flow is a sign-in under way. It is in a cookie of the browser that began it.
type flow struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"` // of PKCE
	Return   string    `json:"r"`
	Until    time.Time `json:"u"`
	Before   Before    `json:"b,omitzero"`
}

// Before is the session that the browser had when it began to sign in. It ends with the sign-in.
type Before struct {
	Tenant  godwit.TenantID  `json:"t,omitzero"`
	Session godwit.SessionID `json:"s,omitzero"`
}

// Seal renders v for a cookie.
func Seal(ring Ring, v any, bound string) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(ring.Seal(plain, bound)), nil
}

// Open reads what Seal rendered for the same bound.
func Open(ring Ring, text string, v any, bound string) error {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return err
	}
	plain, err := ring.Open(sealed, bound)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}

func token() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

const (
	homePage  = "/ui/"
	maxReturn = 500 // it has to fit into a cookie
)

// checkReturn returns the page to open after the sign-in. It must be a page of the dashboard on this server.
func checkReturn(to string) (string, error) {
	if to == "" {
		return homePage, nil
	}
	u, err := url.Parse(to)
	if err != nil || len(to) > maxReturn || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || u.Fragment != "" ||
		strings.ContainsAny(to, "\\") || !strings.HasPrefix(to, homePage) || !strings.HasPrefix(path.Clean(u.Path)+"/", homePage) ||
		strings.HasPrefix(path.Clean(u.Path)+"/", homePage+"oidc/") {
		return "", refuse(BadReturn, nil, "return: must be the path of a page of this dashboard, such as /ui/events, of at most %d characters", maxReturn)
	}
	return to, nil
}
