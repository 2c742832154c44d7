package httpsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"
)

// DeliveryComponents returns the components that a delivery covers: method, target, content digest, content type and
// idempotency key. Together with the created and nonce parameters they protect everything that a receiver acts on.
func DeliveryComponents() []string {
	return []string{"@method", "@target-uri", "content-digest", "content-type", "idempotency-key"}
}

// Signer signs requests over a fixed list of components. It is prepared once and
// may be used concurrently.
type Signer struct {
	components []component
	list       string // the components as a structured field inner list
}

// NewSigner prepares a signer for a list of components.
func NewSigner(components ...string) (*Signer, error) {
	parsed, err := parseComponents(components)
	if err != nil {
		return nil, fmt.Errorf("prepare signer: %w", err)
	}
	if len(parsed) > maxComponents {
		return nil, fmt.Errorf("prepare signer: %d components, at most %d are allowed", len(parsed), maxComponents)
	}
	list := []byte{'('}
	for i, c := range parsed {
		if i > 0 {
			list = append(list, ' ')
		}
		list = append(list, c.id...)
	}
	return &Signer{components: parsed, list: string(append(list, ')'))}, nil
}

// Params are the parameters of a signature that differ from request to request.
type Params struct {
	// Keys sign one after the other, one signature each. While a key is being replaced, these are the new and the old key.
	Keys []Key
	// Created is the time of signing. Required; whole seconds are sent.
	Created time.Time
	// Nonce is a value that was never used before with the key. Left out if empty.
	Nonce string
	// Expires is the time after which receivers reject the request. Left out if zero.
	Expires time.Time
	// Tag names the application. Left out if empty.
	Tag string
	// Label names the first signature in both fields; further ones get "-2", "-3"
	// and so on appended. Defaults to sig1, sig2, and so on.
	Label string
	// IncludeAlg adds the algorithm's name, for receivers that cannot derive it from the key id. Defaults to false.
	IncludeAlg bool
	// Keep leaves the request's existing signatures in place, as a relay does with those of its upstream; new signatures
	// then use other labels. Defaults to false: existing signatures are replaced.
	Keep bool
}

const (
	inputField     = "Signature-Input"
	signatureField = "Signature"
)

// scratch holds the buffers of one signing. They are pooled because every attempt is signed.
type scratch struct{ base, input, signature, raw []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// SignRequest sets Signature-Input and Signature. All covered fields, Content-Digest included, must be on the request
// already and must not change afterwards. An [*Error] says which component cannot be signed; the request is then unchanged.
func (s *Signer) SignRequest(req *http.Request, p Params) error {
	buf := scratches.Get().(*scratch)
	defer scratches.Put(buf)
	if err := s.sign(buf, req, &p); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	if req.Header == nil {
		req.Header = make(http.Header, 2)
	}
	fields := []string{string(buf.input), string(buf.signature)}
	req.Header[inputField] = fields[0:1:1]
	req.Header[signatureField] = fields[1:2:2]
	return nil
}

func (s *Signer) sign(buf *scratch, req *http.Request, p *Params) error {
	if len(p.Keys) == 0 {
		return errors.New("no key")
	}
	m, err := requestMessage(req, "")
	if err != nil {
		return err
	}
	lines, err := m.appendLines(buf.base[:0], s.components)
	if err != nil {
		return err
	}
	buf.base, buf.input, buf.signature = lines, buf.input[:0], buf.signature[:0]
	taken, err := buf.keep(req.Header, p.Keep)
	if err != nil {
		return err
	}
	for i, key := range p.Keys {
		label := p.label(i)
		if err := checkLabel(label, taken); err != nil {
			return err
		}
		if err := s.signWith(buf, lines, label, key, p); err != nil {
			return err
		}
	}
	return nil
}

// signWith appends one signature to both fields. The component lines are the same
// for every key; only the last line of the base differs.
func (s *Signer) signWith(buf *scratch, lines []byte, label string, key Key, p *Params) error {
	if len(buf.input) > 0 {
		buf.input = append(buf.input, ", "...)
		buf.signature = append(buf.signature, ", "...)
	}
	buf.input = append(append(buf.input, label...), '=')
	start := len(buf.input)
	buf.input = append(buf.input, s.list...)
	var err error
	if buf.input, err = p.append(buf.input, key); err != nil {
		return err
	}
	buf.base = appendParamsLine(lines, buf.input[start:])
	if buf.raw, err = key.appendSignature(buf.raw[:0], buf.base); err != nil {
		return err
	}
	buf.signature = append(append(buf.signature, label...), "=:"...)
	buf.signature = base64.StdEncoding.AppendEncode(buf.signature, buf.raw)
	buf.signature = append(buf.signature, ':')
	return nil
}

// appendParamsLine appends the last line of a signature base (RFC 9421, section 2.5, step 3).
func appendParamsLine[T string | []byte](lines []byte, params T) []byte {
	lines = append(lines, `"@signature-params": `...)
	return append(lines, params...)
}

// append writes the signature parameters in the order created, expires, nonce, alg, keyid, tag. RFC 9421 leaves the order to the
// signer, but some verifiers rebuild the parameters in this order instead of reading it, and reject any other.
func (p *Params) append(dst []byte, key Key) ([]byte, error) {
	if key.material == nil {
		return dst, errors.New("key is empty")
	}
	if p.Created.IsZero() {
		return dst, errors.New("no creation time")
	}
	dst, err := appendTimeParam(dst, "created", p.Created)
	if err != nil {
		return dst, err
	}
	if !p.Expires.IsZero() {
		if dst, err = appendTimeParam(dst, "expires", p.Expires); err != nil {
			return dst, err
		}
	}
	if p.Nonce != "" {
		if dst, err = appendStringParam(dst, "nonce", p.Nonce); err != nil {
			return dst, err
		}
	}
	if p.IncludeAlg {
		dst = append(append(append(dst, `;alg="`...), key.Algorithm...), '"')
	}
	dst = append(dst, key.material.params...)
	if p.Tag != "" {
		dst, err = appendStringParam(dst, "tag", p.Tag)
	}
	return dst, err
}

// maxInteger is the largest integer of a structured field (RFC 9651, section 3.3.1).
const maxInteger = 999_999_999_999_999

func appendTimeParam(dst []byte, name string, t time.Time) ([]byte, error) {
	seconds := t.Unix()
	if seconds < -maxInteger || seconds > maxInteger {
		return dst, fmt.Errorf("parameter %s is out of range", name)
	}
	dst = append(append(append(dst, ';'), name...), '=')
	return strconv.AppendInt(dst, seconds, 10), nil
}

// appendStringParam appends a parameter with a structured field string: printable
// ASCII, with quotes and backslashes escaped (RFC 9651, section 4.1.6).
func appendStringParam(dst []byte, name, value string) ([]byte, error) {
	dst = append(append(append(dst, ';'), name...), `="`...)
	for i := range len(value) {
		b := value[i]
		if b < ' ' || b > '~' {
			return dst, fmt.Errorf("parameter %s has characters other than printable ASCII", name)
		}
		if b == '"' || b == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, b)
	}
	return append(dst, '"'), nil
}

func (p *Params) label(i int) string {
	switch {
	case p.Label == "" && i == 0:
		return "sig1"
	case p.Label == "":
		return "sig" + strconv.Itoa(i+1)
	case i == 0:
		return p.Label
	}
	return p.Label + "-" + strconv.Itoa(i+1)
}

// checkLabel wants a structured field key (RFC 9651, section 3.1.2) not in use.
func checkLabel(label string, taken []string) error {
	for i := range len(label) {
		b := label[i]
		letter := 'a' <= b && b <= 'z' || b == '*'
		if !letter && (i == 0 || (b < '0' || b > '9') && b != '_' && b != '-' && b != '.') {
			return fmt.Errorf("label %q is not a structured field key", label)
		}
	}
	if slices.Contains(taken, label) {
		return fmt.Errorf("label %q is taken by a signature on the request", label)
	}
	return nil
}

// keep starts both fields with the signatures already on the request.
func (buf *scratch) keep(header http.Header, wanted bool) (taken []string, err error) {
	if !wanted || len(header[inputField]) == 0 && len(header[signatureField]) == 0 {
		return nil, nil
	}
	for _, field := range []struct {
		name string
		dst  *[]byte
	}{{inputField, &buf.input}, {signatureField, &buf.signature}} {
		present, err := httpsfv.UnmarshalDictionary(header[field.name])
		if err != nil {
			return nil, &Error{Reason: ReasonMalformed, Component: field.name, cause: err}
		}
		text, err := httpsfv.Marshal(present)
		if err != nil || text == "" {
			return nil, &Error{Reason: ReasonMalformed, Component: field.name, cause: err}
		}
		*field.dst = append(*field.dst, text...)
		taken = append(taken, present.Names()...)
	}
	return taken, nil
}
