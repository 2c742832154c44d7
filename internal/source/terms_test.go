package source

import (
	"encoding/json"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

func terms(change func(*Terms)) *Terms {
	t := &Terms{
		Durability: "synced", Retention: 100, DedupWindow: 100, DeadLetters: 100,
		Retries: map[string]RetryTerms{"eds": {10, 1000}, "ojs": {5, 500}},
	}
	if change != nil {
		change(t)
	}
	return t
}

// TestTermsAreOrdered: an acknowledgment holds under terms that promise at least as much, and under no others.
func TestTermsAreOrdered(t *testing.T) {
	acknowledged := terms(nil)
	text, err := json.Marshal(acknowledged)
	if err != nil {
		t.Fatal(err)
	}
	a := &godwit.Acknowledgment{Version: acknowledged.Version(), Terms: text}
	for name, c := range map[string]struct {
		now   *Terms
		holds bool
	}{
		"the same":           {terms(nil), true},
		"kept longer":        {terms(func(t *Terms) { t.Retention++ }), true},
		"a longer window":    {terms(func(t *Terms) { t.DedupWindow++ }), true},
		"more retries":       {terms(func(t *Terms) { t.Retries["eds"] = RetryTerms{11, 1000} }), true},
		"another profile":    {terms(func(t *Terms) { t.Retries["new"] = RetryTerms{1, 1} }), true},
		"kept for less":      {terms(func(t *Terms) { t.Retention-- }), false},
		"a shorter window":   {terms(func(t *Terms) { t.DedupWindow-- }), false},
		"letters for less":   {terms(func(t *Terms) { t.DeadLetters-- }), false},
		"fewer retries":      {terms(func(t *Terms) { t.Retries["ojs"] = RetryTerms{4, 500} }), false},
		"less time":          {terms(func(t *Terms) { t.Retries["ojs"] = RetryTerms{5, 499} }), false},
		"a profile less":     {terms(func(t *Terms) { delete(t.Retries, "ojs") }), false},
		"another durability": {terms(func(t *Terms) { t.Durability = "in memory" }), false},
		"more and less":      {terms(func(t *Terms) { t.Retention++; t.DedupWindow-- }), false},
	} {
		if got := c.now.holds(a); got != c.holds {
			t.Errorf("%s: holds is %t", name, got)
		}
		if same := c.now.Version() == acknowledged.Version(); same != (name == "the same") {
			t.Errorf("%s: the version is %s, was %s", name, c.now.Version(), acknowledged.Version())
		}
	}
	if terms(nil).holds(&godwit.Acknowledgment{Version: "v1-other", Terms: []byte("nonsense")}) {
		t.Error("an acknowledgment of nothing holds")
	}
}

// TestAdoptedKeys: a delivery id of an upstream gives one key; other ids and other upstreams give other keys.
func TestAdoptedKeys(t *testing.T) {
	one, two := godwit.Origin{Source: godwit.SourceID{1}}, godwit.Origin{Source: godwit.SourceID{2}}
	relayed := godwit.Origin{Source: godwit.SourceID{1}, Principal: "p"}
	first := AdoptedKey(one, "delivery")
	if first != AdoptedKey(one, "delivery") || len(first) != 36 || first[14] != '8' {
		t.Errorf("key %s", first)
	}
	seen := map[string]bool{}
	for _, k := range []string{first, AdoptedKey(two, "delivery"), AdoptedKey(relayed, "delivery"), AdoptedKey(one, "delivery2"), AdoptedKey(godwit.Origin{Source: godwit.SourceID{1}, Principal: "pdelivery"}, "")} {
		if seen[k] {
			t.Errorf("%s twice", k)
		}
		seen[k] = true
	}
}
