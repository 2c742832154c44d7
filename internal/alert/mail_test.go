package alert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/alert/smtptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// certificate returns a certificate for 127.0.0.1 and the pool of its issuer.
func certificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &s.TLS.Certificates[0], pool
}

func newMail(t *testing.T, cfg MailConfig) *Mail {
	t.Helper()
	cfg.From, cfg.Now, cfg.Link = "Godwit <godwit@example.com>", func() time.Time { return noon }, "https://hooks.example/v1/notices"
	m, err := NewMail(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func about(kind godwit.NoticeKind, detail string) Notice {
	return Notice{
		Notice: godwit.Notice{
			ID: godwit.NewNoticeID(noon), EndpointID: godwit.NewEndpointID(noon), DeliveryID: godwit.NewDeliveryID(noon), EventID: godwit.NewEventID(noon),
			Kind: kind, Detail: detail, CreatedAt: noon,
		},
		Endpoint: "WEB-X2M8KD-Z", Description: "Orders",
	}
}

func account1(emails ...string) *godwit.Tenant {
	return &godwit.Tenant{ID: godwit.NewTenantID(noon), Code: "9F4K7Q", Name: "Ärger & Co", AlertEmails: emails}
}

func read(t *testing.T, m smtptest.Mail) (header mail.Header, text string) {
	t.Helper()
	parsed, err := mail.ReadMessage(strings.NewReader(m.Text))
	if err != nil {
		t.Fatalf("%v: %s", err, m.Text)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Header, string(body)
}

func TestMailIsSent(t *testing.T) {
	cert, pool := certificate(t)
	for name, c := range map[string]struct {
		server    *smtptest.Server
		scheme    string
		encrypted bool
	}{
		"STARTTLS":                {&smtptest.Server{Certificate: cert}, "smtp", true},
		"TLS from the first byte": {&smtptest.Server{Certificate: cert, Implicit: true}, "smtps", true},
		"in the clear, locally":   {&smtptest.Server{}, "smtp", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := smtptest.Start(t, c.server)
			m := newMail(t, MailConfig{URL: c.scheme + "://me:pa%20ss@" + server.Address(), RootCAs: pool})
			if c.encrypted {
				m.local = func(net.Addr) bool { return false } // so that its certificate is checked
			}
			n := about(godwit.NoticeDeadLetter, "HTTP 500 after 7 attempts\r\nBcc: all@example.com\r\n.\r\n")
			if err := m.Notify(t.Context(), Alert{Tenant: account1("ops@example.com", "dev@example.com"), Notices: []Notice{n}}); err != nil {
				t.Fatal(err)
			}
			got := <-server.Mails
			if got.From != "godwit@example.com" || !slices.Equal(got.To, []string{"ops@example.com", "dev@example.com"}) ||
				got.Encrypted != c.encrypted || got.User != "me" || got.Password != "pa ss" {
				t.Errorf("got %+v", got)
			}
			header, text := read(t, got)
			subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
			if err != nil || subject != "[Godwit] Delivery failed for good: WEB-X2M8KD-Z (Orders)" {
				t.Errorf("subject %q %v", subject, err)
			}
			if header.Get("Bcc") != "" || header.Get("Auto-Submitted") != "auto-generated" || header.Get("Date") != "Sun, 01 Mar 2026 12:00:00 +0000" ||
				header.Get("To") != "<ops@example.com>, <dev@example.com>" || header.Get("Message-Id") == "" {
				t.Errorf("header %v", header)
			}
			for _, want := range []string{
				"Account: Ärger & Co (ACC-9F4K7Q-T)", "Endpoint: WEB-X2M8KD-Z (Orders)", "Reason:   HTTP 500 after 7 attempts  Bcc: all@example.com",
				n.EventID.String(), n.DeliveryID.String(), "2026-03-01T12:00:00Z", "https://hooks.example/v1/notices",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
		})
	}
}

func TestMailSumsUp(t *testing.T) {
	server := smtptest.Start(t, &smtptest.Server{})
	m := newMail(t, MailConfig{URL: "smtp://" + server.Address()})
	a := Alert{
		Tenant:  account1("ops@example.com"),
		Notices: []Notice{about(godwit.NoticeEndpointDegraded, "60 % failed"), about(godwit.NoticeEndpointDisabled, "")},
		More:    map[godwit.NoticeKind]int{godwit.NoticeDeadLetter: 40, godwit.NoticeEndpointDegraded: 2},
	}
	a.Notices[1].Endpoint, a.Notices[1].DeliveryID, a.Notices[1].EventID = "", godwit.DeliveryID{}, godwit.EventID{}
	if err := m.Notify(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	got := <-server.Mails
	header, text := read(t, got)
	if subject, _ := new(mime.WordDecoder).DecodeHeader(header.Get("Subject")); subject != "[Godwit] 44 alerts for Ärger & Co" || got.User != "" {
		t.Errorf("subject %q, user %q", subject, got.User)
	}
	for _, want := range []string{"Endpoint degraded", "Endpoint disabled", "Delivery failed for good: 40 more", "Endpoint degraded: 2 more", a.Notices[1].EndpointID.String()} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

func TestMailIsNotSent(t *testing.T) {
	cert, _ := certificate(t)
	var permanent *Permanent
	for name, c := range map[string]struct {
		server    *smtptest.Server
		away      bool // not on this machine
		refuse    map[string]string
		permanent bool
	}{
		"no STARTTLS":           {server: &smtptest.Server{}, away: true, permanent: true},
		"unknown certificate":   {server: &smtptest.Server{Certificate: cert}, away: true},
		"no password taken":     {server: &smtptest.Server{NoAuth: true}, permanent: true},
		"wrong password":        {server: &smtptest.Server{}, refuse: map[string]string{"AUTH": "535 no"}, permanent: true},
		"all mailboxes unknown": {server: &smtptest.Server{}, refuse: map[string]string{"RCPT": "550 unknown"}, permanent: true},
		"greylisted":            {server: &smtptest.Server{}, refuse: map[string]string{"RCPT": "450 later"}},
		"full":                  {server: &smtptest.Server{}, refuse: map[string]string{"DATA": "452 no room"}},
		"sender refused":        {server: &smtptest.Server{}, refuse: map[string]string{"MAIL": "550 not you"}, permanent: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := smtptest.Start(t, c.server)
			server.Refuse(func(command string) string {
				verb, _, _ := strings.Cut(command, " ")
				return c.refuse[verb]
			})
			m := newMail(t, MailConfig{URL: "smtp://me:open-sesame@" + server.Address()})
			if c.away {
				m.local = func(net.Addr) bool { return false }
			}
			err := m.Notify(t.Context(), Alert{Tenant: account1("ops@example.com"), Notices: []Notice{about(godwit.NoticeDeadLetter, "")}})
			if err == nil || errors.As(err, &permanent) != c.permanent || strings.Contains(err.Error(), "sesame") {
				t.Errorf("got %v", err)
			}
			if len(server.Mails) > 0 {
				t.Error("mail was sent")
			}
		})
	}
	closed := smtptest.Start(t, &smtptest.Server{})
	m := newMail(t, MailConfig{URL: "smtp://" + closed.Address()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	alert := Alert{Tenant: account1("ops@example.com"), Notices: []Notice{about(godwit.NoticeDeadLetter, "")}}
	if err := m.Notify(ctx, alert); err == nil || errors.As(err, &permanent) {
		t.Errorf("without time: %v", err)
	}
	alert.Tenant.AlertEmails = nil
	if err := m.Notify(ctx, alert); err != nil {
		t.Errorf("to nobody: %v", err)
	}
}

// A wrong address does not block the mail to the others.
func TestMailGoesToThoseThatExist(t *testing.T) {
	server := smtptest.Start(t, &smtptest.Server{})
	server.Refuse(func(command string) string {
		if strings.Contains(command, "gone@") {
			return "550 unknown"
		}
		return ""
	})
	m := newMail(t, MailConfig{URL: "smtp://" + server.Address()})
	alert := Alert{Tenant: account1("gone@example.com", "ops@example.com"), Notices: []Notice{about(godwit.NoticeDeadLetter, "")}}
	if err := m.Notify(t.Context(), alert); err != nil {
		t.Fatal(err)
	}
	if got := <-server.Mails; !slices.Equal(got.To, []string{"ops@example.com"}) {
		t.Errorf("sent to %v", got.To)
	}
}

func TestMailIsConfiguredRightly(t *testing.T) {
	now := func() time.Time { return noon }
	for name, cfg := range map[string]MailConfig{
		"scheme":  {URL: "http://u:sesame@host", From: "a@example.com", Now: now},
		"no host": {URL: "smtp://", From: "a@example.com", Now: now},
		"no URL":  {URL: "smtp://u:ses%zzame@host", From: "a@example.com", Now: now},
		"no from": {URL: "smtp://host", From: "nobody", Now: now},
		"no time": {URL: "smtp://host", From: "a@example.com"},
	} {
		if _, err := NewMail(cfg); err == nil || strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "%zz") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for url, want := range map[string]string{"smtp://h": "h:587", "smtps://h": "h:465", "smtp://h:25": "h:25", "smtp://[::1]": "[::1]:587"} {
		m, err := NewMail(MailConfig{URL: url, From: "a@example.com", Now: now})
		if err != nil || m.address != want {
			t.Errorf("%s: %+v %v", url, m, err)
		}
	}
}

// A mail server need not accept lines of more than 998 characters, however many addresses and whatever name there are.
func TestLinesOfAMailAreShort(t *testing.T) {
	var emails []string
	for i := range 10 {
		emails = append(emails, strings.Repeat(string(rune('a'+i)), 60)+"@"+strings.Repeat("example.", 20)+"com")
	}
	notice := about(godwit.NoticeDeadLetter, strings.Repeat("é", 2000))
	notice.Description = strings.Repeat("é", 500)
	text := newMail(t, MailConfig{URL: "smtp://127.0.0.1"}).compose(Alert{Tenant: account1(emails...), Notices: []Notice{notice}})
	for line := range strings.SplitSeq(string(text), "\r\n") {
		if len(line) > 998 {
			t.Errorf("%d characters: %.80s…", len(line), line)
		}
	}
	header, _ := read(t, smtptest.Mail{Text: string(text)})
	to, err := header.AddressList("To")
	if err != nil || len(to) != len(emails) {
		t.Errorf("to %v: %v", to, err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if err != nil || subject != "[Godwit] Delivery failed for good: WEB-X2M8KD-Z ("+notice.Description+")" {
		t.Errorf("subject %q: %v", subject, err)
	}
}
