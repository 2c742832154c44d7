package alert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"net/url"
	"time"
)

// MailConfig configures Mail.
type MailConfig struct {
	// URL of the server: smtp://user:password@host:587 or smtps://user:password@host:465.
	URL string
	// From is the sender's address.
	From string
	// Link is the address of the list of notices; part of the text.
	Link string
	// Now returns the date of the mail.
	Now func() time.Time
	// RootCAs are the authorities that sign the server's certificate. Defaults to the system's.
	RootCAs *x509.CertPool
}

// Mail is a Notifier that sends e-mail to the tenant's addresses. It sends password and text only over an encrypted
// connection or to this machine.
type Mail struct {
	cfg            MailConfig
	from           *mail.Address
	host, address  string
	implicit       bool // TLS from the first byte
	user, password string
	local          func(net.Addr) bool // whether the server is on this machine
}

// NewMail reads the configuration. Its errors hold no password.
func NewMail(cfg MailConfig) (*Mail, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("smtp-url: not a URL")
	}
	m := &Mail{cfg: cfg, host: u.Hostname(), implicit: u.Scheme == "smtps", local: loopback}
	port := u.Port()
	switch {
	case u.Scheme != "smtp" && u.Scheme != "smtps":
		return nil, errors.New("smtp-url: must begin with smtp:// or smtps://")
	case port == "" && m.implicit:
		port = "465"
	case port == "":
		port = "587"
	}
	m.address = net.JoinHostPort(m.host, port)
	if u.User != nil {
		m.user = u.User.Username()
		m.password, _ = u.User.Password()
	}
	if m.from, err = mail.ParseAddress(cfg.From); err != nil {
		return nil, errors.New("smtp-from: not an address")
	}
	if cfg.Now == nil {
		return nil, errors.New("alert: mail needs a clock")
	}
	return m, nil
}

// Notify sends one mail to all of the tenant's addresses, if it has any.
func (m *Mail) Notify(ctx context.Context, a Alert) error {
	if len(a.Tenant.AlertEmails) == 0 {
		return nil
	}
	client, err := m.connect(ctx)
	if err != nil {
		return verdict("connect to mail server", err)
	}
	defer client.Close()
	if err := m.greet(client); err != nil {
		return verdict("greet mail server", err)
	}
	return verdict("send mail", m.send(client, a))
}

// verdict marks errors that a retry would not change (RFC 5321, 4.2.1).
func verdict(doing string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, err)
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code >= 500 {
		return &Permanent{err}
	}
	return err
}

func (m *Mail) connect(ctx context.Context) (*smtp.Client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.address)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end) // an unusable connection fails at the first read
	}
	if m.implicit {
		secured := tls.Client(conn, m.tls(conn))
		if err := secured.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = secured
	}
	client, err := smtp.NewClient(conn, m.host)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if err := m.secure(client, conn); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// tls checks the server's certificate, except for a server on this machine: its certificate is often self-signed, and the
// connection cannot be intercepted.
func (m *Mail) tls(conn net.Conn) *tls.Config {
	return &tls.Config{
		ServerName: m.host, RootCAs: m.cfg.RootCAs, MinVersion: tls.VersionTLS12, InsecureSkipVerify: m.local(conn.RemoteAddr()),
	}
}

func loopback(a net.Addr) bool {
	addr, ok := a.(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

var errNoTLS = errors.New("the mail server offers no STARTTLS: passwords and alerts are not sent in the clear")

// secure encrypts the connection, except to this machine.
func (m *Mail) secure(client *smtp.Client, conn net.Conn) error {
	if m.implicit {
		return nil
	}
	if offered, _ := client.Extension("STARTTLS"); offered {
		return client.StartTLS(m.tls(conn))
	}
	if m.local(conn.RemoteAddr()) {
		return nil
	}
	return &Permanent{errNoTLS}
}

func (m *Mail) greet(client *smtp.Client) error {
	if m.user == "" {
		return nil
	}
	if offered, _ := client.Extension("AUTH"); !offered {
		return &Permanent{errors.New("the mail server takes no password")}
	}
	// net/smtp would check the host by name; it was checked by address before.
	return client.Auth(plain{m.user, m.password})
}

// plain is SASL PLAIN (RFC 4616).
type plain struct{ user, password string }

func (p plain) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + p.user + "\x00" + p.password), nil
}

func (p plain) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return nil, errors.New("the mail server asks for more than a password")
	}
	return nil, nil
}

// send delivers to the addresses that the server accepts. It fails only if there is none: a mistyped address must not
// block the mail to the others.
func (m *Mail) send(client *smtp.Client, a Alert) error {
	if err := client.Mail(m.from.Address); err != nil {
		return err
	}
	var refused error
	taken := 0
	for _, to := range a.Tenant.AlertEmails {
		if err := client.Rcpt(to); err != nil {
			refused = err
			continue
		}
		taken++
	}
	if taken == 0 {
		return refused
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(m.compose(a)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = client.Quit() // the mail is already sent
	return nil
}
