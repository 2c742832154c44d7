package command

import (
	"testing"
	"time"
)

// A second person must approve: not the submitter, not with a credential that either made for the other, and not the same person with another key.
func TestIndependentApprovers(t *testing.T) {
	submitted := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	before, after := submitted.Add(-time.Hour), submitted.Add(time.Minute)
	for _, c := range []struct {
		name     string
		makers   []string // of the submitter k1's credential
		approver Caller
		want     bool
	}{
		{"the submitter", nil, Caller{Actor: "k1", Since: before}, false},
		{"another", nil, Caller{Actor: "k2", Since: before}, true},
		{"another, made for the approval", nil, Caller{Actor: "k2", Since: after}, false},
		{"a key that the submitter made", nil, Caller{Actor: "k2", Makers: []string{"k1"}, Since: before}, false},
		{"the maker of the submitter's key", []string{"k2"}, Caller{Actor: "k2", Since: before}, false},
		{"two keys that one key made", []string{"k0"}, Caller{Actor: "k2", Makers: []string{"k0"}, Since: before}, true},
		{"two keys that one person made", []string{"usr_ann"}, Caller{Actor: "k2", Makers: []string{"usr_ann"}, Since: before}, false},
		{"keys of two people", []string{"usr_ann"}, Caller{Actor: "k2", Makers: []string{"usr_bob"}, Since: before}, true},
	} {
		rec := &Record{Actor: "k1", Principal: "k1", CreatedAt: submitted, Confirmation: &Confirmation{Makers: c.makers}}
		if got := independent(c.approver, rec); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
