package evidence

import (
	"slices"
	"time"
)

// A Summary answers an auditor from evidence alone (IDS-EVD-7): for each key, how many executions there were and what each
// caller got. Add the items of one chain in order. It holds every answer, so narrow down the items of a long chain before.
//
// It reads items like this. One with "executed" is an execution. One that tells of a key's holder (decision first_seen, or
// an execution's step without a decision) is part of the answer to the first submission, which is what the last of them says.
// Every other one that names a submission is an answer of its own.
type Summary struct {
	keys  map[string]*KeySummary
	order []string
}

// A KeySummary is the history of one key.
type KeySummary struct {
	Key        string `json:"idempotency_key"`
	Command    string `json:"command,omitempty"`
	Executions int    `json:"executions"`
	Replays    int    `json:"replays"`
	Conflicts  int    `json:"conflicts"`
	Refusals   int    `json:"refusals"`
	// Delivered and Dead count milestones of events that its executions emitted.
	Delivered int `json:"delivered"`
	Dead      int `json:"dead"`
	// Holders are the commands that had the key, one after the other. There are several if the window ended between them.
	Holders []string `json:"command_ids"`
	Answers []Answer `json:"answers"`
}

// An Answer is the answer to one submission.
type Answer struct {
	Seq           int64     `json:"seq"` // of the item that holds the answer
	At            time.Time `json:"at"`
	SubmittedID   string    `json:"submitted_command_id,omitempty"`
	CommandID     string    `json:"command_id,omitempty"`
	Actor         string    `json:"actor_id,omitempty"`
	Channel       string    `json:"channel,omitempty"`
	Decision      string    `json:"decision,omitempty"`
	Executed      bool      `json:"executed"`
	Status        string    `json:"status"`
	OutcomeRef    string    `json:"outcome_ref,omitempty"`
	OutcomeDigest string    `json:"outcome_digest,omitempty"`
	Reason        string    `json:"reason,omitempty"`
}

// The decisions, as entries hold them.
const (
	firstSeen  = "first_seen"
	duplicate  = "duplicate_replayed"
	conflicted = "conflict_rejected"
)

// statuses maps the type of an item to the outcome, if the item itself has none.
var statuses = map[string]string{
	Reserved: "in_progress", Confirmed: "in_progress", Recovered: "in_progress", Unresolved: "in_progress",
	ExecutedOK: "executed", FailedType: "failed", RejectedTy: "rejected", Compensated: "compensated",
}

// Add adds the next item. It ignores items without a key.
func (s *Summary) Add(it *Item) {
	if it.Key == "" {
		return
	}
	k := s.keys[it.Key]
	if k == nil {
		if s.keys == nil {
			s.keys = map[string]*KeySummary{}
		}
		k = &KeySummary{Key: it.Key}
		s.keys[it.Key] = k
		s.order = append(s.order, it.Key)
	}
	k.add(it)
}

// Key returns the history of a key.
func (s *Summary) Key(key string) (KeySummary, bool) {
	k := s.keys[key]
	if k == nil {
		return KeySummary{}, false
	}
	return *k, true
}

// Keys returns all, in the order of their first items.
func (s *Summary) Keys() []KeySummary {
	all := make([]KeySummary, 0, len(s.order))
	for _, key := range s.order {
		all = append(all, *s.keys[key])
	}
	return all
}

func (k *KeySummary) add(it *Item) {
	// The end of a compensation is not another execution of a command that was executed before.
	if it.Executed && (it.Type != Compensated || !k.executed(it.CommandID)) {
		k.Executions++
	}
	if k.Command == "" {
		k.Command = it.Command
	}
	switch {
	case it.Type == Delivered:
		k.Delivered++
	case it.Type == Dead:
		k.Dead++
	case it.Decision == duplicate:
		k.Replays++
		k.Answers = append(k.Answers, answer(it))
	case it.Decision == conflicted:
		k.Conflicts++
		k.Answers = append(k.Answers, answer(it))
	case it.Decision == firstSeen:
		k.first(it)
	case it.Type == RejectedTy || it.Type == Observation:
		k.Refusals++
		k.Answers = append(k.Answers, answer(it))
	case statuses[it.Type] != "":
		k.first(it)
	}
}

// executed reports whether an execution of the command was counted.
func (k *KeySummary) executed(commandID string) bool {
	return slices.ContainsFunc(k.Answers, func(a Answer) bool {
		return a.Decision == firstSeen && a.CommandID == commandID && a.Executed
	})
}

// first is a step of the command that holds the key.
func (k *KeySummary) first(it *Item) {
	for i := len(k.Answers) - 1; i >= 0; i-- {
		if a := &k.Answers[i]; a.Decision == firstSeen && a.CommandID == it.CommandID {
			executed := a.Executed
			now := answer(it)
			now.Decision, now.SubmittedID = firstSeen, a.SubmittedID
			now.Actor, now.Channel = a.Actor, a.Channel
			now.Executed = executed || it.Executed
			*a = now
			return
		}
	}
	a := answer(it)
	a.Decision = firstSeen
	k.Answers = append(k.Answers, a)
	if !slices.Contains(k.Holders, it.CommandID) {
		k.Holders = append(k.Holders, it.CommandID)
	}
}

func answer(it *Item) Answer {
	a := Answer{
		Seq: it.Seq, At: it.At, SubmittedID: it.SubmittedID, CommandID: it.CommandID, Actor: it.Actor, Channel: it.Channel,
		Decision: it.Decision, Executed: it.Executed, Status: it.OutcomeStatus, OutcomeRef: it.OutcomeRef,
		OutcomeDigest: it.OutcomeDigest, Reason: it.Reason,
	}
	if a.Status == "" {
		a.Status = statuses[it.Type]
	}
	if a.SubmittedID == "" {
		a.SubmittedID = it.CommandID
	}
	return a
}
