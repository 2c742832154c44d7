package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// member is a member of a JSON object. Objects keep the order in which the server sent them.
type member struct {
	name  string
	value any // nil, bool, json.Number, string, []any or object
}

type object []member

func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// parseValue reads a JSON document.
func parseValue(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readValue(d)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return v, nil
}

func readValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readValue(d)
			if err != nil {
				return nil, err
			}
			o = append(o, member{name.(string), v}) // the decoder has checked that it is a string
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := readValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

// dig follows a path such as "delivery.status"; nil if there is no such member.
func dig(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o.get(name)
	}
	return v
}

// idOf returns the text at the path; "" if there is none.
func idOf(item []byte, path string) string {
	v, err := parseValue(item)
	if err != nil {
		return ""
	}
	text, _ := dig(v, path).(string)
	return text
}

// plain writes a value on one line.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return Printable(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = plain(v[i])
		}
		return strings.Join(parts, ", ")
	case object:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = Printable(m.name) + "=" + plain(m.value)
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprint(v)
}

// ago writes a time relative to now if it is near, and in local time if it is not.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	text := span(d.Abs())
	switch {
	case text == "":
		return t.In(now.Location()).Format("2006-01-02 15:04")
	case d.Abs() < time.Second:
		return "now"
	case d < 0:
		return "in " + text
	}
	return text + " ago"
}

// span writes a duration up to two days with one unit; "" if it is longer.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d/time.Hour))
	}
	return ""
}

// shortID keeps the beginning and the end of an id: sub_018f…7c8d9e0f. Commands accept it in place of the whole.
func shortID(id string) string {
	const begin, end = 8, 8
	if len(id) <= begin+end+1 {
		return id
	}
	return id[:begin] + "…" + id[len(id)-end:]
}
