package receiver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Delivery is an authenticated delivery, as a handler sees it.
type Delivery struct {
	// Scheme is the name of the scheme, as in "ojs".
	Scheme string
	// Principal is the authenticated producer.
	Principal string
	Identity
	// Method and URL as the sender used them.
	Method string
	URL    string
	// Header holds all fields. Only what the scheme signs is proven.
	Header http.Header
	// ContentType is the payload's media type.
	ContentType string
	// Body is the payload, byte for byte.
	Body []byte
	// SignedAt is the signed time; zero if the scheme has none.
	SignedAt time.Time
	// ReceivedAt is when it arrived.
	ReceivedAt time.Time
}

// JSON decodes the payload.
func (d *Delivery) JSON(into any) error {
	if err := json.Unmarshal(d.Body, into); err != nil {
		return fmt.Errorf("decode payload: %w", err)
	}
	return nil
}

// credentialWords are parts of the names of fields that hold credentials. These fields are not needed after verification, so
// they are neither kept nor logged.
var credentialWords = []string{"authorization", "cookie", "signature", "secret", "token", "hmac", "transmission-sig",
	"api-key", "apikey", "password"}

func isCredential(field string) bool {
	field = strings.ToLower(field)
	for _, word := range credentialWords {
		if strings.Contains(field, word) {
			return true
		}
	}
	return false
}
