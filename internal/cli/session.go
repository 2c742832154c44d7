package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"
	"golang.org/x/term"
)

// A Session is one run of a command: its input and output, and what was parsed.
type Session struct {
	Context context.Context
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Lookup  func(name string) (string, bool) // environment variables
	Parsed  *kong.Context
	Now     func() time.Time
	// Width is the number of columns of the terminal that Stdout is; 0 if it is none. Without a terminal nothing is shortened.
	Width int
	// Interactive says that questions can be asked on Stdin.
	Interactive bool
}

// NewSession returns a session of the process's own streams.
func NewSession(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) *Session {
	s := &Session{Context: ctx, Stdin: stdin, Stdout: stdout, Stderr: stderr, Lookup: lookup, Now: time.Now}
	if f, ok := stdout.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			s.Width = width
		} else {
			s.Width = 80
		}
	}
	if f, ok := stdin.(*os.File); ok {
		s.Interactive = isatty.IsTerminal(f.Fd())
	}
	return s
}

// path returns the names of the commands that were given, such as [endpoints pause].
func (s *Session) path() (names []string) {
	if s.Parsed == nil {
		return nil
	}
	for _, p := range s.Parsed.Path {
		if p.Command != nil {
			names = append(names, p.Command.Name)
		}
	}
	return names
}

// say writes a line for people.
func (s *Session) say(format string, args ...any) { fmt.Fprintf(s.Stderr, format+"\n", args...) }

// Ask asks the user a question.
func (s *Session) Ask(question string) (string, error) {
	fmt.Fprint(s.Stderr, question)
	answer, err := ReadLine(s.Stdin)
	if err != nil && answer == "" {
		return "", fmt.Errorf("no answer: %w", err)
	}
	return strings.TrimSpace(answer), nil
}

// askSecret asks for a text that the terminal does not show.
func (s *Session) askSecret(question string) (string, error) {
	f, ok := s.Stdin.(*os.File)
	if !ok || !s.Interactive {
		line, err := ReadLine(s.Stdin)
		if err != nil && line == "" {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		return strings.TrimSpace(line), nil
	}
	fmt.Fprint(s.Stderr, question)
	text, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(s.Stderr)
	return strings.TrimSpace(string(text)), err
}

// errDeclined reports that the user did not confirm.
var errDeclined = errors.New("not confirmed; nothing was done")

// confirm asks before something is destroyed. yes answers for the user.
func (s *Session) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !s.Interactive {
		return errors.New("this has to be confirmed, and there is no terminal to ask at: add --yes to confirm it")
	}
	answer, err := s.Ask(question + " Type yes: ")
	if err != nil {
		return err
	}
	if !strings.EqualFold(answer, "yes") && !strings.EqualFold(answer, "y") {
		return errDeclined
	}
	return nil
}

// maxLine limits the length of an answer.
const maxLine = 1 << 12

// ReadLine reads byte by byte, so that the rest of the input is left for the next question.
func ReadLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := r.Read(b)
		if n == 1 && b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[:n]...)
		if err != nil || len(line) > maxLine {
			return string(line), err
		}
	}
}

// Printable quotes a text that a terminal might interpret: it may come from an untrusted source.
func Printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
