package sqlite

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// rareDocument holds the members of an attempt that are rarely set.
type rareDocument struct {
	Verdict *verdictDocument `json:"verdict,omitempty"`
	Hops    []godwit.Hop     `json:"hops,omitempty"`
	Problem *godwit.Problem  `json:"problem,omitempty"`
	Wire    *godwit.Wire     `json:"wire,omitempty"`
}

// packAttempt encodes a first attempt for the row of its delivery. Its start time comes first, because the sweep reads it.
func packAttempt(a *godwit.Attempt) ([]byte, error) {
	v, t := &a.Verdict, &a.Trace
	rare := rareDocument{Hops: t.Hops, Problem: t.Problem}
	if doc := rareIn(v); doc != (verdictDocument{}) {
		rare.Verdict = &doc
	}
	if w := t.Wire; w != nil && (w.Cut || len(w.Request) > 0 || len(w.Response) > 0) {
		rare.Wire = w
	}
	var document string
	if rare.Verdict != nil || len(rare.Hops) > 0 || rare.Problem != nil || rare.Wire != nil {
		var err error
		if document, err = documentText(rare); err != nil {
			return nil, err
		}
	}
	p := make(packer, 0, 192+len(a.URL)+len(t.Body)+len(t.Detail)+len(document))
	p.number(micros(a.StartedAt))
	p.id(a.ID)
	for _, n := range [...]int64{int64(a.N), int64(a.Duration), int64(a.Status), micros(a.NextAt), int64(len(t.SignedWith))} {
		p.number(n)
	}
	for _, s := range [...]string{
		string(a.Trigger), a.URL, string(v.Outcome), string(v.Reason), string(v.Class),
		t.Proto, t.RemoteAddr, t.Body, t.ContentType, t.Link, t.RetryAfter, t.Detail, t.Actor, document,
	} {
		p.text(s)
	}
	for _, key := range t.SignedWith {
		p.text(key)
	}
	if t.Wire != nil && rare.Wire == nil {
		for _, n := range t.Wire.Timing {
			p.number(n)
		}
	}
	return p, nil
}

func unpackAttempt(b []byte, d *godwit.Delivery) (godwit.Attempt, error) {
	u := unpacker{rest: b}
	a := attemptOf(d)
	v, t := &a.Verdict, &a.Trace
	a.StartedAt, a.ID = fromMicros(u.number()), u.id()
	a.N, a.Duration, a.Status, a.NextAt = int(u.number()), time.Duration(u.number()), int(u.number()), fromMicros(u.number())
	keys := u.number()
	a.Trigger, a.URL = godwit.Trigger(u.text()), u.text()
	v.Outcome, v.Reason, v.Class = godwit.Outcome(u.text()), godwit.Reason(u.text()), godwit.FailureClass(u.text())
	t.Proto, t.RemoteAddr, t.Body, t.ContentType = u.text(), u.text(), u.text(), u.text()
	t.Link, t.RetryAfter, t.Detail, t.Actor = u.text(), u.text(), u.text(), u.text()
	document := u.text()
	for ; keys > 0 && u.err == nil; keys-- {
		t.SignedWith = append(t.SignedWith, u.text())
	}
	var timing godwit.WireTiming
	if u.err == nil && len(u.rest) > 0 {
		for i := range timing {
			timing[i] = u.number()
		}
		t.Wire = &godwit.Wire{Timing: timing}
	}
	var rare rareDocument
	if u.err != nil {
		return a, u.err
	}
	if err := parseDocument(document, &rare); err != nil {
		return a, err
	}
	t.Hops, t.Problem = rare.Hops, rare.Problem
	if rare.Wire != nil {
		t.Wire = rare.Wire
	}
	if rare.Verdict != nil {
		rare.Verdict.addTo(v)
	}
	return a, nil
}
