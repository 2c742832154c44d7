package idempotency_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/trace"
)

func TestFingerprintOff(t *testing.T) {
	trace.Covers(t, "IKH-FPR-1", "IKH-RSP-6")
	f := newFixture(t, func(c *idempotency.Config) { c.Fingerprint = idempotency.NoFingerprint })
	first := f.post(`{"n":1}`, "Idempotency-Key", key1)
	if r := f.post(`{"n":2}`, "Idempotency-Key", key1); r.body != first.body || !r.replayed() {
		t.Errorf("other body: %+v", r)
	}
	f.wantCalls(1)
	rec, err := f.recorded("alice", "POST /things", key1)
	if err != nil || rec.Fingerprint != [32]byte{} {
		t.Errorf("a fingerprint was stored although they are off: %v", err)
	}
	on := newFixture(t, nil)
	on.post(`{"n":1}`, "Idempotency-Key", key1)
	rec, err = on.recorded("alice", "POST /things", key1)
	want := idempotency.WholePayload.Sum(idempotency.Payload{ContentType: "application/json", Body: []byte(`{"n":1}`)})
	if err != nil || rec.Fingerprint != want {
		t.Errorf("the payload's fingerprint was not stored: %v", err)
	}
}

func TestFingerprintOfChosenFields(t *testing.T) {
	trace.Covers(t, "IKH-FPR-3")
	f := newFixture(t, func(c *idempotency.Config) {
		c.Fingerprint = idempotency.Fingerprint{Doc: "SHA-256 of amount", Sum: func(p idempotency.Payload) [32]byte {
			var body struct {
				Amount string `json:"amount"`
			}
			json.Unmarshal(p.Body, &body)
			return sha256.Sum256([]byte(body.Amount))
		}}
	})
	first := f.post(`{"amount":"1","note":"a"}`, "Idempotency-Key", key1)
	if r := f.post(`{"amount":"1","note":"b"}`, "Idempotency-Key", key1); r.body != first.body || !r.replayed() {
		t.Errorf("change outside the chosen field: %+v", r)
	}
	wantDocumented(t, f.post(`{"amount":"2","note":"a"}`, "Idempotency-Key", key1), 422, problem.KeyReused)
	f.wantCalls(1)
}

func TestFingerprintIsTheServers(t *testing.T) {
	trace.Covers(t, "IKH-FPR-2", "IKH-FPR-4", "IKH-FPR-3")
	f := newFixture(t, nil)
	perAttempt := func(n int) []string {
		return []string{"Idempotency-Key", key1, "Date", fmt.Sprintf("Sun, 01 Mar 2026 12:00:%02d GMT", n), "Signature", fmt.Sprintf("sig=:%d:", n),
			"Traceparent", fmt.Sprintf("00-%032d-%016d-01", n, n), "Content-Digest", "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"}
	}
	first := f.post(`{"n":1}`, perAttempt(1)...)
	if r := f.post(`{"n":1}`, perAttempt(2)...); r.body != first.body || !r.replayed() {
		t.Errorf("same body with new date, signature and trace: %+v", r)
	}
	// The digest claims that this is the same content.
	wantDocumented(t, f.post(`{"n":2}`, perAttempt(3)...), 422, problem.KeyReused)
	f.wantCalls(1)
}
