package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/config"
)

// none is the flags of a verb that has none.
type none struct{}

// A moment is a time as people give it: RFC 3339, a local date or time, or how long ago.
type moment string

func (m moment) resolve(now time.Time) (time.Time, error) {
	var d config.Duration
	if err := d.UnmarshalText([]byte(m)); err == nil {
		return now.Add(-d.Real()), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, string(m), time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write 2h (that long ago), 2006-01-02, \"2006-01-02 15:04\" or 2006-01-02T15:04:05Z", string(m))
}

// A jsonText is a JSON value on the command line, or in a file if it begins with "@".
type jsonText json.RawMessage

// UnmarshalText reads the flag.
func (j *jsonText) UnmarshalText(text []byte) error {
	if name, isFile := strings.CutPrefix(string(text), "@"); isFile {
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return err
		}
	}
	if !json.Valid(text) {
		return fmt.Errorf("is not JSON")
	}
	*j = append(jsonText{}, text...)
	return nil
}

// A secretFile is a secret in a file: a command line is open to every user of the machine.
type secretFile string

// members returns the flags that were given, by their names in the API. An `api` tag names a member; otherwise it is the flag's name, with
// underscores.
func members(flags any, now time.Time) (map[string]any, error) {
	out := map[string]any{}
	v := reflect.Indirect(reflect.ValueOf(flags))
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if _, embedded := field.Tag.Lookup("embed"); embedded {
			inner, err := members(value.Addr().Interface(), now)
			if err != nil {
				return nil, err
			}
			for name, m := range inner {
				out[name] = m
			}
			continue
		}
		flag := field.Tag.Get("name")
		if flag == "" || value.IsZero() {
			continue
		}
		name := field.Tag.Get("api")
		switch name {
		case "":
			name = strings.ReplaceAll(flag, "-", "_")
		case "-":
			continue // the command reads it itself
		}
		m, err := memberOf(value, now)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		out[name] = m
	}
	return out, nil
}

func memberOf(value reflect.Value, now time.Time) (any, error) {
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	switch v := value.Interface().(type) {
	case moment:
		t, err := v.resolve(now)
		return t.UTC(), err
	case config.Duration:
		return v.Real().Seconds(), nil
	case jsonText:
		return json.RawMessage(v), nil
	case secretFile:
		text, err := os.ReadFile(string(v))
		return strings.TrimRight(string(text), "\r\n"), err
	}
	return value.Interface(), nil
}

// query returns filters as query parameters.
func query(flags any, now time.Time) (url.Values, error) {
	given, err := members(flags, now)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	for name, v := range given {
		if t, ok := v.(time.Time); ok {
			v = t.Format(time.RFC3339Nano)
		}
		q.Set(name, fmt.Sprint(v))
	}
	return q, nil
}

// body merges the document of --body and the flags, which win.
func (s *Session) body(document string, flags any) (map[string]any, error) {
	out := map[string]any{}
	if document != "" {
		text, err := s.readDocument(document)
		if err != nil {
			return nil, fmt.Errorf("--body: %w", err)
		}
		raw := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, fmt.Errorf("--body: is not a JSON object: %w", err)
		}
		for name, v := range raw {
			out[name] = v
		}
	}
	given, err := members(flags, s.Now())
	if err != nil {
		return nil, err
	}
	for name, v := range given {
		out[name] = v
	}
	return out, nil
}

// readDocument reads JSON that is given itself, from a file, or from standard input for "-".
func (s *Session) readDocument(given string) ([]byte, error) {
	switch {
	case strings.HasPrefix(given, "{"), strings.HasPrefix(given, "["):
		return []byte(given), nil
	case given == "-":
		return readAll(s.Stdin)
	}
	return os.ReadFile(strings.TrimPrefix(given, "@"))
}
