package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// printLines writes one document a line.
func (s *Session) printLines(items []json.RawMessage) error {
	for _, item := range items {
		if err := s.printJSON(item); err != nil {
			return err
		}
	}
	return nil
}

// printJSON writes a document on one line.
func (s *Session) printJSON(text json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	line.WriteByte('\n')
	_, err := s.Stdout.Write(line.Bytes())
	return err
}

// printOne writes a document: as JSON, or as names and values. Members that parts names are shown as tables below the rest.
func (s *Session) printOne(text json.RawMessage, asJSON bool, parts map[string][]column) error {
	if asJSON {
		return s.printJSON(text)
	}
	v, err := parseValue(text)
	if err != nil {
		return err
	}
	o, ok := v.(object)
	if !ok {
		_, err := fmt.Fprintln(s.Stdout, plain(v))
		return err
	}
	var rest object
	var tables []member
	for _, m := range o {
		if _, isTable := parts[m.name]; isTable {
			tables = append(tables, m)
		} else {
			rest = append(rest, m)
		}
	}
	var b strings.Builder
	s.describe(&b, rest, "")
	for _, m := range tables {
		list, _ := m.value.([]any)
		fmt.Fprintf(&b, "\n%s: %d\n", m.name, len(list))
		if len(list) == 0 {
			continue
		}
		columns, rows := parts[m.name], make([][]string, len(list))
		for i, item := range list {
			rows[i] = make([]string, len(columns))
			for j := range columns {
				rows[i][j] = columns[j].cell(s, item)
			}
		}
		b.WriteString(layOut(columns, rows, s.Width))
	}
	_, err = fmt.Fprint(s.Stdout, b.String())
	return err
}

// describe writes the members of an object, one a line, those of inner objects indented.
func (s *Session) describe(b *strings.Builder, o object, indent string) {
	longest := 0
	for _, m := range o {
		if !nested(m.value) {
			longest = max(longest, utf8.RuneCountInString(m.name))
		}
	}
	for _, m := range o {
		name := Printable(m.name)
		if !nested(m.value) {
			fmt.Fprintf(b, "%s%s\n", indent, strings.TrimRight(fmt.Sprintf("%-*s  %s", longest, name, s.scalar(m.value)), " "))
			continue
		}
		fmt.Fprintf(b, "%s%s:\n", indent, name)
		switch v := m.value.(type) {
		case object:
			s.describe(b, v, indent+"  ")
		case []any:
			for i, item := range v {
				if i > 0 {
					b.WriteString("\n")
				}
				if inner, ok := item.(object); ok {
					s.describe(b, inner, indent+"  ")
				} else {
					fmt.Fprintf(b, "%s  %s\n", indent, plain(item))
				}
			}
		}
	}
}

// nested reports whether a value takes lines of its own.
func nested(v any) bool {
	switch v := v.(type) {
	case object:
		return len(v) > 0
	case []any:
		for _, item := range v {
			if _, ok := item.(object); ok {
				return true
			}
		}
	}
	return false
}

// scalar writes a value; on a terminal, times also relative to now.
func (s *Session) scalar(v any) string {
	text := plain(v)
	if text == "" {
		return "-"
	}
	if _, ok := v.(string); !ok || s.Width == 0 || len(text) < len("2006-01-02T15:04:05Z") {
		return text
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	if near := ago(t, s.Now()); !strings.Contains(near, "-") {
		return t.Local().Format(time.DateTime) + " (" + near + ")"
	}
	return t.Local().Format(time.DateTime)
}
