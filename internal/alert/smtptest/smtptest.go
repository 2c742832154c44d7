// Package smtptest is a mail server for tests, on a real socket. It implements the part of SMTP that sending uses, and keeps
// the mail.
package smtptest

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

// A Mail is an accepted mail.
type Mail struct {
	From      string
	To        []string
	Text      string // header and body, without transparency dots
	Encrypted bool
	User      string // the authenticated user; empty without authentication
	Password  string
}

// A Server accepts mail. Set its fields before the first connection, except Reply.
type Server struct {
	Certificate *tls.Certificate // with it STARTTLS is offered, or TLS from the first byte
	Implicit    bool             // TLS from the first byte
	NoAuth      bool             // refuses authentication
	Mails       chan Mail

	t        testing.TB
	listener net.Listener
	mu       sync.Mutex
	reply    func(command string) string
	conns    sync.WaitGroup
}

// Start listens on a free port of 127.0.0.1.
func Start(t testing.TB, s *Server) *Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.t, s.listener, s.Mails = t, l, make(chan Mail, 100)
	s.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.conns.Wait()
	})
	return s
}

// Address is host and port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Refuse answers commands with the result of f if it is not empty: its lines are whole replies.
func (s *Server) Refuse(f func(command string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = f
}

func (s *Server) refusal(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reply == nil {
		return ""
	}
	return s.reply(command)
}

// session is one connection.
type session struct {
	*Server
	conn net.Conn
	text *textproto.Conn
	mail Mail
}

func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	c := &session{Server: s, conn: conn}
	if s.Implicit {
		c.encrypt()
	}
	c.text = textproto.NewConn(c.conn)
	c.say("220 test")
	for {
		command, err := c.text.ReadLine()
		if err != nil {
			return
		}
		if refusal := s.refusal(command); refusal != "" {
			c.say(refusal)
			continue
		}
		if !c.obey(command) {
			return
		}
	}
}

func (c *session) say(lines string) {
	_ = c.text.PrintfLine("%s", strings.ReplaceAll(lines, "\n", "\r\n")) // the client may have disconnected
}

func (c *session) encrypt() {
	c.conn = tls.Server(c.conn, &tls.Config{Certificates: []tls.Certificate{*c.Certificate}, MinVersion: tls.VersionTLS12})
	c.mail.Encrypted = true
}

func (c *session) obey(command string) bool {
	verb, rest, _ := strings.Cut(command, " ")
	switch strings.ToUpper(verb) {
	case "EHLO", "HELO":
		c.say(c.extensions())
	case "STARTTLS":
		c.say("220 go on")
		c.encrypt()
		c.text = textproto.NewConn(c.conn)
	case "AUTH":
		c.authenticate(rest)
	case "MAIL":
		c.mail.From, c.mail.To = bracketed(rest), nil
		c.say("250 ok")
	case "RCPT":
		c.mail.To = append(c.mail.To, bracketed(rest))
		c.say("250 ok")
	case "DATA":
		c.say("354 go on")
		text, err := readAll(c.text.R)
		if err != nil {
			return false
		}
		c.mail.Text = text
		c.Mails <- c.mail
		c.say("250 taken")
	case "QUIT":
		c.say("221 bye")
		return false
	default:
		c.say("250 ok")
	}
	return true
}

func (c *session) extensions() string {
	lines := []string{"250-test"}
	if c.Certificate != nil && !c.mail.Encrypted {
		lines = append(lines, "250-STARTTLS")
	}
	if !c.NoAuth {
		lines = append(lines, "250-AUTH PLAIN")
	}
	return strings.Join(append(lines, "250 8BITMIME"), "\n")
}

func (c *session) authenticate(rest string) {
	_, text, _ := strings.Cut(rest, " ")
	plain, err := base64.StdEncoding.DecodeString(text)
	parts := strings.Split(string(plain), "\x00")
	if err != nil || len(parts) != 3 {
		c.say("501 what?")
		return
	}
	c.mail.User, c.mail.Password = parts[1], parts[2]
	c.say("235 welcome")
}

func bracketed(text string) string {
	_, text, _ = strings.Cut(text, "<")
	text, _, _ = strings.Cut(text, ">")
	return text
}

func readAll(r *bufio.Reader) (string, error) {
	b, err := textproto.NewReader(r).ReadDotBytes()
	return string(b), err
}
