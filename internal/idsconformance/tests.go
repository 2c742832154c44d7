package idsconformance

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// same checks that a repeat got the answer of the first.
func same(first, repeat *answer) error {
	switch {
	case len(first.Outcome) == 0 && first.OutcomeRef == "":
		return fmt.Errorf("the first answer has neither an outcome nor a reference to it: %s", first)
	case repeat.code != first.code:
		return fmt.Errorf("a repeat was answered with %s; the first with %d", repeat, first.code)
	case !bytes.Equal(first.Outcome, repeat.Outcome) && (first.OutcomeRef == "" || first.OutcomeRef != repeat.OutcomeRef):
		return fmt.Errorf("a repeat has another outcome: %s; the first was %s", repeat.Outcome, first.Outcome)
	case repeat.CommandID != first.CommandID || repeat.Key != first.Key:
		return fmt.Errorf("a repeat names command %s and key %s; the first was %s and %s", repeat.CommandID, repeat.Key, first.CommandID, first.Key)
	case repeat.Executed || repeat.Decision != "duplicate_replayed":
		return fmt.Errorf("a repeat is not told as one: %s", repeat)
	}
	return nil
}

func duplicateNoEffect(t *trial) (string, error) {
	const sends = 10
	run := t.run()
	for range sends {
		if _, err := t.submit(200, "touch", object{"run": run}, nil); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d sent, 1 effect", sends), t.expect(run, 1)
}

func concurrentOneExecution(t *trial) (string, error) {
	run := t.run()
	answers, failures := make([]*answer, t.cfg.Parallel), make([]error, t.cfg.Parallel)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i], failures[i] = t.post(t.envelope("touch", object{"run": run}, nil)) })
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return "", err
	}
	var first *answer
	for _, a := range answers {
		if a.Decision != "first_seen" {
			continue
		}
		if first != nil {
			return "", fmt.Errorf("two were first: %s and %s", first.CommandID, a.CommandID)
		}
		first = a
	}
	if first == nil || first.code != 200 || !first.Executed {
		return "", fmt.Errorf("none was first and executed, such as %s", answers[0])
	}
	var replayed, processing, limited int
	for _, a := range answers {
		switch {
		case a == first:
		case a.code == 202 && a.Status == "processing" && a.CommandID == first.CommandID:
			processing++
		case a.code == 429 && a.header.Get("Retry-After") != "": // it executes nothing
			limited++
		default:
			if err := same(first, a); err != nil {
				return "", err
			}
			replayed++
		}
	}
	return fmt.Sprintf("%d at once: 1 executed, %d replayed, %d told that it is processing, %d limited; 1 effect",
		len(answers), replayed, processing, limited), t.expect(run, 1)
}

func replayAfterSuccess(t *trial) (string, error) {
	run := t.run()
	first, err := t.submit(200, "touch", object{"run": run}, nil)
	if err != nil {
		return "", err
	}
	if !first.Executed || first.Decision != "first_seen" || len(first.Key) != 64 {
		return "", fmt.Errorf("the first answer does not say that it executed, under a key: %s", first)
	}
	repeat, err := t.submit(200, "touch", object{"run": run}, nil)
	if err != nil {
		return "", err
	}
	if err := same(first, repeat); err != nil {
		return "", err
	}
	return "the outcome is the same to the byte, executed is false", t.expect(run, 1)
}

// holds lists how long a command is kept running, one try after the other: on a busy machine a repeat may come too late for the
// first.
var holds = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second}

func inProgress(t *trial) (string, error) {
	for _, hold := range holds {
		run := t.run()
		late, err := t.during(run, hold)
		if err != nil {
			return "", err
		}
		if !late {
			return "202 processing with command, key and status_url, which then tells the outcome", t.expect(run, 1)
		}
	}
	return "", fmt.Errorf("a command that takes %s was never seen in progress", holds[len(holds)-1])
}

// during repeats a command while it is running. It reports late if the command ended before.
func (t *trial) during(run string, hold time.Duration) (late bool, err error) {
	args := object{"run": run, "hold_ms": hold.Milliseconds()}
	e := t.envelope("touch", args, nil)
	var first *answer
	var failed error
	ended := make(chan struct{})
	go func() { defer close(ended); first, failed = t.post(e) }()
	seen, err := t.await("/ids/v1/commands/"+e["command_id"].(string), "in_progress", ended)
	if err != nil {
		return false, err
	}
	repeat := &answer{}
	if seen {
		if repeat, err = t.post(t.envelope("touch", args, nil)); err != nil {
			return false, err
		}
	}
	<-ended
	switch {
	case failed != nil:
		return false, failed
	case first.code != 200:
		return false, fmt.Errorf("the first was answered with %s", first)
	case !seen || repeat.code == 200 && repeat.Decision == "duplicate_replayed":
		return true, nil
	case repeat.code != 202 || repeat.Status != "processing" || repeat.CommandID != e["command_id"] || repeat.Key != first.Key || len(repeat.Key) != 64 ||
		repeat.StatusURL == "" || len(repeat.Outcome) > 0:
		return false, fmt.Errorf("a repeat in progress is not told so, with command, key and where to ask: %s", repeat)
	}
	status, err := t.get(repeat.StatusURL)
	if err == nil && (status.code != 200 || status.Status != "executed" || !bytes.Equal(status.Outcome, first.Outcome)) {
		err = fmt.Errorf("%s says %s; the outcome was %s", repeat.StatusURL, status, first.Outcome)
	}
	return false, err
}

// await reads a command's status until it is as expected. It reports false if the command ended before.
func (t *trial) await(path, want string, ended <-chan struct{}) (bool, error) {
	for {
		a, err := t.get(path)
		if err != nil {
			return false, err
		}
		if a.code == 200 && a.Status == want {
			return true, nil
		}
		timer := time.NewTimer(10 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			return false, nil
		}
	}
}

func collision(t *trial) (string, error) {
	run := t.run()
	first, err := t.submit(200, "touch", object{"run": run}, object{"notify": "one"})
	if err != nil {
		return "", err
	}
	a, err := t.submit(409, "touch", object{"run": run}, object{"notify": "another"})
	if err != nil {
		return "", err
	}
	if a.Status != "rejected" || a.Type != "execution.rejected" || a.Reason != "idempotency_conflict" {
		return "", fmt.Errorf("the conflict is told as %s", a)
	}
	repeat, err := t.submit(200, "touch", object{"run": run}, object{"notify": "one"})
	if err != nil {
		return "", err
	}
	if err := same(first, repeat); err != nil {
		return "", err
	}
	if err := t.expect(run, 1); err != nil {
		return "", err
	}
	return "409 idempotency_conflict, evidence with both fingerprints, the original still replays", t.conflictEvidence(first.Key)
}

// conflictEvidence finds the item about a conflict.
func (t *trial) conflictEvidence(key string) error {
	a, err := t.get("/ids/v1/evidence?limit=1000&idempotency_key=" + key)
	if err != nil {
		return err
	}
	var list struct {
		Evidence []struct {
			Decision    string `json:"decision"`
			Executed    bool   `json:"executed"`
			Fingerprint string `json:"fingerprint"`
			Original    string `json:"original_fingerprint"`
		} `json:"evidence"`
	}
	if a.code != 200 {
		return fmt.Errorf("GET /ids/v1/evidence: %s", a)
	}
	if err := a.decode(&list); err != nil {
		return err
	}
	for _, it := range list.Evidence {
		if it.Decision == "conflict_rejected" && !it.Executed && strings.HasPrefix(it.Fingerprint, "sha256:") &&
			strings.HasPrefix(it.Original, "sha256:") && it.Fingerprint != it.Original {
			return nil
		}
	}
	return fmt.Errorf("no evidence of the conflict holds both fingerprints: %s", a)
}

func confirmation(t *trial) (string, error) {
	one, two := t.run(), t.run()
	x, err := t.awaiting(one)
	if err != nil {
		return "", err
	}
	y, err := t.awaiting(two)
	if err != nil {
		return "", err
	}
	for range 3 { // IDS-CNF-6, -7
		a, err := t.submit(202, "delete", object{"run": one}, nil)
		if err != nil {
			return "", err
		}
		if a.Substatus != "awaiting_confirmation" || a.CommandID != x.CommandID || a.Token != "" {
			return "", fmt.Errorf("a repeat of what awaits its confirmation was answered with %s", a)
		}
	}
	// IDS-CNF-2: another command, and the same key under another id.
	other := t.envelope("delete", object{"run": one}, nil)
	if _, err := t.post(other); err != nil {
		return "", err
	}
	for _, id := range []string{y.CommandID, other["command_id"].(string)} {
		a, err := t.confirm(id, x.Token)
		if err != nil {
			return "", err
		}
		if a.code != 403 && a.code != 422 && a.code != 404 {
			return "", fmt.Errorf("the token of one command was taken for another: %s", a)
		}
	}
	if err := errors.Join(t.expect(one, 0), t.expect(two, 0)); err != nil {
		return "", fmt.Errorf("before the confirmation %w", err)
	}
	return "bound to command and key, used once, neither bypassed nor asked for again", t.confirmedOnce(x, one, two)
}

// awaiting submits a command that needs a confirmation (IDS-CNF-1).
func (t *trial) awaiting(run string) (*answer, error) {
	a, err := t.submit(202, "delete", object{"run": run}, nil)
	if err == nil && (a.Substatus != "awaiting_confirmation" || a.Token == "" || a.CommandID == "") {
		err = fmt.Errorf("a command that needs a confirmation was answered with %s", a)
	}
	return a, err
}

// confirmedOnce confirms, twice, and submits again (IDS-CNF-3, -5).
func (t *trial) confirmedOnce(x *answer, one, two string) error {
	done, err := t.confirm(x.CommandID, x.Token)
	if err != nil {
		return err
	}
	if done.code != 200 || done.Status != "executed" {
		return fmt.Errorf("the confirmation was answered with %s", done)
	}
	again, err := t.confirm(x.CommandID, x.Token)
	if err != nil {
		return err
	}
	if err := same(done, again); err != nil {
		return fmt.Errorf("confirmed again: %w", err)
	}
	repeat, err := t.submit(200, "delete", object{"run": one}, nil)
	if err != nil {
		return err
	}
	if repeat.Token != "" {
		return fmt.Errorf("a repeat of what was confirmed asks again: %s", repeat)
	}
	if err := same(done, repeat); err != nil {
		return err
	}
	return errors.Join(t.expect(one, 1), t.expect(two, 0))
}
