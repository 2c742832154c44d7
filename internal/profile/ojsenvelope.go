package profile

import "time"

// OJSEvent is what an Open Job Spec event envelope says (OJS-PAY-2).
type OJSEvent struct {
	ID      string
	Type    string
	Source  string // a URI
	Time    time.Time
	Subject string // left out when empty
	Data    []byte // a JSON object, put in as it is
}

// OJSEnvelope writes an envelope. The same event always gives the same bytes.
func OJSEnvelope(e OJSEvent) []byte {
	b := make([]byte, 0, 192+len(e.ID)+len(e.Type)+len(e.Source)+len(e.Subject)+len(e.Data))
	b = append(b, `{"specversion":"1.0"`...)
	b = appendMember(b, "id", e.ID)
	b = appendMember(b, "type", e.Type)
	b = appendMember(b, "source", e.Source)
	b = appendMember(b, "time", ojsTime(e.Time))
	b = appendMember(b, "subject", e.Subject)
	b = appendRaw(b, "data", e.Data)
	return append(b, '}')
}

// ojsTime renders a time as RFC 3339 in UTC with milliseconds, and without them when they are zero.
func ojsTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }
