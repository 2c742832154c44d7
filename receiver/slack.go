package receiver

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
)

// Slack is the scheme of Slack's requests: X-Slack-Signature with v0=<hex> over v0:<time>:<body>, deduplicated by event_id.
// Requests without one, such as slash commands, are identified by their bytes. An authentic url_verification challenge is
// answered.
type Slack struct {
	// Secrets lists the accepted signing secrets of the app. Required.
	Secrets []string
	// Principal names the sender. Deduplication is per principal. Defaults to slack.
	Principal string
}

// Profile prepares the scheme.
func (s Slack) Profile() (Profile, error) {
	keys, err := textKeys("slack", s.Secrets, sha256.New)
	if err != nil {
		return Profile{}, err
	}
	principal := ownerOr(s.Principal, "slack")
	return Profile{
		Name: "slack", SignsTime: true, KeySource: "the member event_id; the digest of the body where there is none",
		Authenticate: func(_ context.Context, m *Message, c Check) (Proof, error) {
			return authenticateSlack(keys, principal, m, c)
		},
		Identify:  identifySlack,
		Handshake: slackChallenge,
	}, nil
}

func authenticateSlack(keys []macKey, principal string, m *Message, c Check) (Proof, error) {
	header, timestamp := m.Field("X-Slack-Signature"), m.Field("X-Slack-Request-Timestamp")
	switch {
	case header == "":
		return Proof{}, refuse(ReasonMissing, "X-Slack-Signature is missing")
	case !strings.HasPrefix(header, "v0="):
		return Proof{}, errFormat
	}
	signed, err := unixSeconds(timestamp)
	if err != nil {
		return Proof{}, err
	}
	if err := c.fresh(signed); err != nil {
		return Proof{}, err
	}
	if macs, _ := hexMACs(header, "v0="); !anyMAC(keys, macs, []byte("v0:"+timestamp+":"), m.Body) {
		return Proof{}, errMismatch
	}
	return Proof{Principal: principal, SignedAt: signed, Once: timestamp}, nil
}

func identifySlack(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) {
	envelope, _ := parseMembers(m.Body, "event_id", "type", "event") // slash commands are forms
	key := envelope.text("event_id")
	if key == "" {
		key = bodyKey(m.Body)
	}
	key, err := boundedKey(key, "event_id")
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Key: key, EventID: key, EventType: envelope.text("type"), Attempt: 1 + positive(m.Field("X-Slack-Retry-Num"))}
	if event, err := parseMembers(envelope["event"], "type"); err == nil && event.text("type") != "" {
		id.EventType = event.text("type")
	}
	return id, nil
}

func slackChallenge(m *Message) (Answer, bool) {
	envelope, err := parseMembers(m.Body, "type", "challenge")
	if err != nil || envelope.text("type") != "url_verification" || envelope.text("challenge") == "" {
		return Answer{}, false
	}
	return Answer{
		Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		Body: []byte(envelope.text("challenge")),
	}, true
}
