package idsconformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// trial holds one test's requests to the server.
type trial struct {
	ctx   context.Context
	cfg   *Config
	who   *caller
	marks string
	began time.Time
}

// object is JSON to be sent.
type object = map[string]any

// answer is any response of the server.
type answer struct {
	code   int
	header http.Header
	raw    []byte

	Status      string          `json:"status"`
	Substatus   string          `json:"substatus"`
	Decision    string          `json:"decision"`
	Executed    bool            `json:"executed"`
	CommandID   string          `json:"command_id"`
	Key         string          `json:"idempotency_key"`
	Fingerprint string          `json:"envelope_fingerprint"`
	Outcome     json.RawMessage `json:"outcome"`
	OutcomeRef  string          `json:"outcome_ref"`
	StatusURL   string          `json:"status_url"`
	Token       string          `json:"confirmation_token"`
	Type        string          `json:"type"`
	Reason      string          `json:"reason"`
}

// String is the response in one line that is safe for a terminal.
func (a *answer) String() string {
	const most = 300
	text, more := strings.TrimSpace(string(a.raw)), ""
	if len(text) > most {
		text, more = text[:most], "…"
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return fmt.Sprintf("%d %s%s", a.code, text, more)
}

func (a *answer) decode(into any) error {
	if err := json.Unmarshal(a.raw, into); err != nil {
		return fmt.Errorf("read answer %s: %w", a, err)
	}
	return nil
}

// maxAnswer is the longest answer that is read.
const maxAnswer = 4 << 20

func request(ctx context.Context, cfg *Config, method, path string, body any) (*answer, error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, cfg.URL+path, in)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+cfg.Key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := cfg.Client.Do(req)
	if err != nil {
		return nil, err // it names method and address
	}
	defer resp.Body.Close()
	a := &answer{code: resp.StatusCode, header: resp.Header}
	if a.raw, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return nil, fmt.Errorf("%s %s: read answer: %w", method, path, err)
	}
	// Other JSON has none of the members that tests look for, and the tests say so.
	_ = json.Unmarshal(a.raw, a)
	return a, nil
}

// run marks the effects of a test or of a part of it.
func (t *trial) run() string { return t.marks + "-" + uuid.NewString()[:8] }

// envelope is a command with new ephemeral fields each time.
func (t *trial) envelope(action string, args, options object) object {
	e := object{
		"command_id": "cmd_" + uuid.Must(uuid.NewV7()).String(), "tenant_id": t.who.Tenant, "actor_id": t.who.Actor,
		"intent": object{"entity": "probe", "action": action}, "args": args, "issued_at": t.cfg.Now().UTC().Format(time.RFC3339Nano),
		"message_id": uuid.NewString(), "channel": "conformance",
	}
	if options != nil {
		e["options"] = options
	}
	return e
}

func (t *trial) post(envelope object) (*answer, error) {
	return request(t.ctx, t.cfg, http.MethodPost, "/ids/v1/commands", envelope)
}

// submit sends a command and expects a status code.
func (t *trial) submit(code int, action string, args, options object) (*answer, error) {
	a, err := t.post(t.envelope(action, args, options))
	if err == nil && a.code != code {
		err = fmt.Errorf("probe.%s was answered with %s; expected %d", action, a, code)
	}
	return a, err
}

func (t *trial) confirm(id, token string) (*answer, error) {
	return request(t.ctx, t.cfg, http.MethodPost, "/ids/v1/commands/"+id+"/confirm", object{"confirmation_token": token})
}

func (t *trial) get(path string) (*answer, error) {
	return request(t.ctx, t.cfg, http.MethodGet, path, nil)
}

// effects counts the events that a run's commands have made.
func (t *trial) effects(run string) (int, error) {
	n := 0
	since := t.began.Add(-10 * time.Minute).UTC().Format(time.RFC3339) // clocks differ
	for cursor := ""; ; {
		a, err := t.get("/v1/events?" + url.Values{"type": {"ids.probe"}, "limit": {"200"}, "since": {since}, "cursor": {cursor}}.Encode())
		if err != nil {
			return 0, err
		}
		if a.code != http.StatusOK {
			return 0, fmt.Errorf("GET /v1/events: %s", a)
		}
		var page struct {
			Items []struct {
				Attributes map[string]string `json:"attributes"`
			} `json:"items"`
			Next string `json:"next_cursor"`
		}
		if err := a.decode(&page); err != nil {
			return 0, err
		}
		for _, e := range page.Items {
			if e.Attributes["run"] == run {
				n++
			}
		}
		if cursor = page.Next; cursor == "" {
			return n, nil
		}
	}
}

// expect checks how many effects a run has had.
func (t *trial) expect(run string, want int) error {
	n, err := t.effects(run)
	if err == nil && n != want {
		err = fmt.Errorf("there are %d effects; expected %d", n, want)
	}
	return err
}
