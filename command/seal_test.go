package command

import (
	"reflect"
	"testing"
	"time"
)

// Every member of a record that awaits confirmation is part of its digest, except the MAC, which is made from the digest.
func TestDigestCoversEveryMember(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	whole := func() *Record {
		return &Record{
			Tenant: "t1", Key: "key", KeyVersion: 1, CommandID: "cmd_1", Intent: Intent{"tenant", "delete", "t2"}, Class: I1, Actor: "a1", Principal: "a1",
			Fingerprint: "sha256:1", Status: InProgress, Substatus: AwaitingConfirmation, OutcomeRef: "outcome", Outcome: []byte{1},
			CreatedAt: at, UpdatedAt: at, ExpiresAt: at, Owner: "node", LeaseUntil: at, Try: 1, Envelope: []byte{2}, Previous: "cmd_0", Version: 1,
			Confirmation: &Confirmation{TokenHash: []byte{3}, ExpiresAt: at, ConfirmedAt: at, StepUpHash: []byte{4}, StepUpBy: "a2", StepUpTill: at,
				Makers: []string{"a3", "a4"}},
			Ledger: []LedgerEntry{{Name: "charge", State: CallStarted, StartedAt: at, EndedAt: at, Result: []byte{5}}},
		}
	}
	want := whole().digest()
	// change sets each member within v to another value, one after the other, and calls changed with the member's name.
	var change func(v reflect.Value, name string, changed func(name string))
	change = func(v reflect.Value, name string, changed func(name string)) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		defer v.Set(before)
		switch {
		case v.Type() == reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(at.Add(time.Microsecond)))
		case v.Type() == reflect.TypeFor[[]byte]():
			v.SetBytes([]byte{9})
		case v.Kind() == reflect.String:
			v.SetString(v.String() + "x")
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.Kind() == reflect.Pointer:
			change(v.Elem(), name, changed)
			v.SetZero()
		case v.Kind() == reflect.Slice:
			change(v.Index(0), name+"[0]", changed)
			v.SetZero()
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				change(v.Field(i), name+"."+v.Type().Field(i).Name, changed)
			}
			return
		default:
			t.Fatalf("%s is of kind %s", name, v.Kind())
		}
		changed(name)
	}
	r := whole()
	members := 0
	change(reflect.ValueOf(r).Elem(), "Record", func(name string) {
		if members++; name != "Record.MAC" && r.digest() == want {
			t.Errorf("%s can be changed unnoticed", name)
		}
	})
	if members < 30 || r.digest() != want {
		t.Errorf("%d members were changed, and put back: %v", members, r.digest() == want)
	}
}

// Records of commands that were confirmed before makers entered the digest stay genuine.
func TestDigestOfEndedCommandsLeavesMakersOut(t *testing.T) {
	r := &Record{Status: Executed, Confirmation: &Confirmation{TokenHash: []byte{1}}}
	before := r.digest()
	if r.Confirmation.Makers = []string{"a1"}; r.digest() != before {
		t.Error("the makers of an ended command change its digest")
	}
}
