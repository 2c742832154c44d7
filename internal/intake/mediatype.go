package intake

import (
	"mime"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/cloudevents"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// unknownMediaType is the media type of a binary CloudEvent that names none (RFC 9110, section 8.3).
const unknownMediaType = "application/octet-stream"

// MediaType returns the Content-Type of a request whose body is the payload. It is forwarded unchanged to receivers, so it
// must be present and correct (EDS-MTH-4). A CloudEvent in binary mode may omit it, as it may omit datacontenttype.
func MediaType(h http.Header) (string, error) {
	values := h["Content-Type"]
	switch {
	case len(values) == 0 && cloudevents.Present(h):
		return unknownMediaType, nil
	case len(values) != 1 || values[0] == "":
		return "", problem.UnsupportedMediaType.In("Content-Type", "must say once what the payload is; receivers get it word for word")
	case values[0] == "application/json":
		return "application/json", nil
	case !ValidMediaType(values[0]):
		return "", problem.UnsupportedMediaType.In("Content-Type", "must be a media type of at most %d printable characters", godwit.MaxContentTypeSize)
	}
	return strings.Clone(values[0]), nil // a waiting event must not keep the whole header of its request in memory
}

// ValidMediaType reports whether v can be forwarded as a Content-Type.
func ValidMediaType(v string) bool {
	if len(v) > godwit.MaxContentTypeSize {
		return false
	}
	for i := range len(v) {
		if v[i] < 0x20 || v[i] > 0x7e {
			return false
		}
	}
	media, _, err := mime.ParseMediaType(v)
	kind, sub, ok := strings.Cut(media, "/")
	return err == nil && ok && kind != "" && sub != "" && !strings.Contains(media, "*")
}
