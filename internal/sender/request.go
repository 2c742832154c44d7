package sender

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Request is the input of one attempt. Body and the values in Header must not be changed after Send was called, not even when
// it has returned: a response may come before the request is fully written.
type Request struct {
	// Method defaults to POST.
	Method string

	// URL is the target. Send checks it with CheckURL again, since configuration may have changed since registration.
	URL string

	// Header is sent as it is, on every hop. Add credentials in Prepare. On a hop to another origin Authorization and Cookie
	// are left out. User-Agent defaults to Godwit.
	Header http.Header

	// Body is the payload. Defaults to empty.
	Body []byte

	// Timeout limits the whole attempt: resolving, connecting, writing, reading, and all hops. Defaults to 30 s.
	Timeout time.Duration

	// Prepare is called once for every hop, when its URL and Host are final, to add credential and signature. They are made
	// anew for a redirect's target (EDS-RED-6). otherOrigin says that the hop leaves the scheme, host or port of URL. Prepare
	// may change the header. It must not change URL, Host, method and body, and must not keep the request, whose memory is
	// reused. An error ends the attempt as godwit.FailureCredential, with the error's text as detail. Defaults to nothing.
	Prepare func(req *http.Request, otherOrigin bool) error

	// FreshConnection asks for a new DNS lookup and a new connection, which is closed after the attempt (EDS-STA-421). An
	// HTTP/1 connection that answered 421 is not used again in any case; an HTTP/2 connection continues for its other streams.
	// Defaults to false.
	FreshConnection bool

	// ClientCertificate is used if the server asks for one, on hops to the origin of URL only. Connections are never shared
	// between certificates. Defaults to none.
	ClientCertificate *tls.Certificate

	// Follow says which redirects are followed. Defaults to none.
	Follow Redirects

	// KeepHeader copies the request's header into the Exchange also if the answer is 2xx. Defaults to false.
	KeepHeader bool
}

// ErrHeader says that a header field cannot be sent.
var ErrHeader = errors.New("header cannot be sent")

// connectionHeaders belong to the connection or are set from the request. With them a caller could frame a second request or
// switch protocols.
var connectionHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Http2-Settings": true, "Keep-Alive": true,
	"Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true,
}

// CheckHeader checks whether a header field may be sent: no line breaks or other control characters, and no field that belongs
// to the connection. The error wraps ErrHeader and does not repeat the value.
func CheckHeader(name, value string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return checkValue(name, value)
}

func checkName(name string) error {
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("%w: name %q is not a token", ErrHeader, name)
	case connectionHeaders[textproto.CanonicalMIMEHeaderKey(name)]:
		return fmt.Errorf("%w: %s belongs to the connection", ErrHeader, name)
	}
	return nil
}

func checkValue(name, value string) error {
	if !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("%w: value of %s holds a control character", ErrHeader, name)
	}
	return nil
}

func checkHeaders(h http.Header) error {
	for name, values := range h {
		if err := checkName(name); err != nil {
			return err
		}
		for _, v := range values {
			if err := checkValue(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}
