package profile

import (
	"encoding/json"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// maxRetryAfter stands for "longer than any limit": a number of forty digits must not overflow.
const maxRetryAfter = time.Duration(math.MaxInt64 / 4)

// retryAfter reads Retry-After in both its forms (EDS-RAF-5): the largest valid value counts; zero, a past date and invalid
// text count as absent.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var longest time.Duration
	for _, value := range h.Values("Retry-After") {
		longest = max(longest, parseRetryAfter(strings.TrimSpace(value), now))
	}
	return longest
}

func parseRetryAfter(value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// sunset reads RFC 8594's field; invalid text is ignored (EDS-SUN-1).
func sunset(h http.Header) time.Time {
	value := h.Get("Sunset")
	if value == "" {
		return time.Time{}
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// location resolves the Location field against the URL that answered.
func location(x *godwit.Exchange) string {
	value := x.Header.Get("Location")
	if value == "" {
		return ""
	}
	base, err := url.Parse(x.URL)
	if err != nil {
		return ""
	}
	target, err := base.Parse(value)
	if err != nil {
		return ""
	}
	target.Fragment = ""
	return target.String()
}

const maxProblemText = 1024

// problemDetails keeps the content of an RFC 9457 document. It has no part in classification (EDS-PRB-2).
func problemDetails(x *godwit.Exchange) *godwit.Problem {
	mediaType, _, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/problem+json" || x.BodyCapped {
		return nil
	}
	var p struct {
		Type   any `json:"type"`
		Title  any `json:"title"`
		Status any `json:"status"`
		Detail any `json:"detail"`
	}
	if json.Unmarshal(x.Body, &p) != nil {
		return nil
	}
	text := func(v any) string { s, _ := v.(string); return Excerpt(s, maxProblemText) }
	status, _ := p.Status.(float64)
	if status < 0 || status > 999 {
		status = 0
	}
	return &godwit.Problem{Type: text(p.Type), Title: text(p.Title), Status: int(status), Detail: text(p.Detail)}
}

// Excerpt cuts a text to at most n bytes of valid UTF-8.
func Excerpt(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
