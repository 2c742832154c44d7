package sqlite

import (
	"reflect"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// fill sets every member of a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text \x00 \"é\"")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(12345)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Array:
		fill(v.Index(v.Len() - 1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// packAttempt keeps every member of an attempt, including members added later.
func TestPackAttempt(t *testing.T) {
	var full godwit.Attempt
	fill(reflect.ValueOf(&full).Elem())
	of := &godwit.Delivery{ID: full.DeliveryID, TenantID: full.TenantID, EventID: full.EventID, EndpointID: full.EndpointID}
	plain := attemptOf(of)
	plain.N, plain.StartedAt = 1, noon
	for _, a := range []godwit.Attempt{full, plain} {
		b, err := packAttempt(&a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := unpackAttempt(b, of); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("unpacked\n%+v, %v, want\n%+v", got, err, a)
		}
		for i := range b {
			if _, err := unpackAttempt(b[:i], of); err == nil {
				t.Errorf("took %d of %d bytes for an attempt", i, len(b))
			}
		}
	}
}

func TestRecipientsDamaged(t *testing.T) {
	var p packer
	p.recipient(recipient{trigger: godwit.TriggerAccept})
	for i := 1; i < len(p); i++ {
		if _, err := unpackRecipients(p[:i]); err == nil {
			t.Errorf("took %d of %d bytes for a recipient", i, len(p))
		}
	}
}

func FuzzUnpackAttempt(f *testing.F) {
	whole, err := packAttempt(&godwit.Attempt{N: 1, URL: "https://receiver.example/", StartedAt: noon})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = unpackAttempt(b, &godwit.Delivery{})
		_, _ = unpackRecipients(b)
	})
}
