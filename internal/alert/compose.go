package alert

import (
	"bytes"
	"fmt"
	"maps"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// titles are the names of the kinds in a subject.
var titles = map[godwit.NoticeKind]string{
	godwit.NoticeDeadLetter:       "Delivery failed for good",
	godwit.NoticeEndpointDegraded: "Endpoint degraded",
	godwit.NoticeEndpointDisabled: "Endpoint disabled",
}

// compose writes the mail: a short plain text. No line is longer than mail servers must accept (RFC 5322, 2.1.1).
func (m *Mail) compose(a Alert) []byte {
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	header("From", m.from.String())
	header("To", strings.Join(recipients(a.Tenant.AlertEmails), ",\r\n "))
	header("Subject", strings.ReplaceAll(mime.QEncoding.Encode("utf-8", "[Godwit] "+clean(subject(a))), "?= =?", "?=\r\n =?"))
	header("Date", m.cfg.Now().UTC().Format(time.RFC1123Z))
	header("Message-ID", "<"+a.Notices[0].ID.String()+"@"+domain(m.from.Address)+">")
	header("Auto-Submitted", "auto-generated") // no automatic reply (RFC 3834)
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(m.text(a))) // to memory
	_ = w.Close()
	return b.Bytes()
}

func recipients(addresses []string) []string {
	list := make([]string, len(addresses))
	for i, a := range addresses {
		list[i] = (&mail.Address{Address: a}).String()
	}
	return list
}

func domain(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func subject(a Alert) string {
	n := &a.Notices[0]
	if count := a.count(); count > 1 {
		return fmt.Sprintf("%d alerts for %s", count, a.Tenant.Name)
	}
	return titles[n.Kind] + ": " + name(n)
}

func (a *Alert) count() int {
	n := len(a.Notices)
	for _, more := range a.More {
		n += more
	}
	return n
}

// name returns the endpoint's name as people know it.
func name(n *Notice) string {
	switch {
	case n.Endpoint == "":
		return n.EndpointID.String()
	case n.Description == "":
		return n.Endpoint
	}
	return n.Endpoint + " (" + n.Description + ")"
}

func (m *Mail) text(a Alert) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(clean(fmt.Sprintf(format, args...)) + "\r\n") }
	line("Account: %s (%s)", a.Tenant.Name, profile.FormatCode(profile.CodeTenant, a.Tenant.Code))
	for i := range a.Notices {
		n := &a.Notices[i]
		line("")
		line("%s", titles[n.Kind])
		line("  Endpoint: %s", name(n))
		line("  When:     %s", n.CreatedAt.UTC().Format(time.RFC3339))
		if n.Detail != "" {
			line("  Reason:   %s", n.Detail)
		}
		if !n.EventID.IsZero() {
			line("  Event:    %s", n.EventID)
		}
		if !n.DeliveryID.IsZero() {
			line("  Delivery: %s", n.DeliveryID)
		}
	}
	if len(a.More) > 0 {
		line("")
		line("And besides:")
		for _, kind := range slices.Sorted(maps.Keys(a.More)) {
			line("  %s: %d more", titles[kind], a.More[kind])
		}
	}
	if m.cfg.Link != "" {
		line("")
		line("All notices: %s", m.cfg.Link)
	}
	return b.String()
}

// clean puts text from receivers and owners on one line: details may quote a response.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
