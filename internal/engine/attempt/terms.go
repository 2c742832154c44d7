package attempt

import (
	"encoding/json"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// terms are what a profile and an endpoint's overrides give. They never change, and endpoints with the same ones share them: a server has
// many endpoints and few policies.
type terms struct {
	policy  godwit.Policy
	follow  []int              // redirects followed inside an attempt
	refused *godwit.FieldError // why the overrides do not apply: an older release with other rules stored them
}

// knownTerms bounds how many terms are remembered. What is forgotten stays with the endpoints that have it.
const knownTerms = 1024

// sharedTerms finds terms that were made before.
type sharedTerms struct {
	mu    sync.Mutex
	known map[string]*terms
}

// of returns the terms of endpoints with a profile and overrides.
func (s *sharedTerms) of(prof profile.Profile, overrides *godwit.PolicyOverrides) *terms {
	text, err := json.Marshal(overrides)
	if err != nil {
		return newTerms(prof, overrides)
	}
	key := prof.Name() + string(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.known[key]
	if found == nil {
		if len(s.known) >= knownTerms || s.known == nil {
			s.known = map[string]*terms{}
		}
		found = newTerms(prof, overrides)
		s.known[key] = found
	}
	return found
}

// fallback returns the policy of an endpoint whose profile is not known. Without one its deliveries would be given up at the first failure.
func (s *sharedTerms) fallback() *godwit.Policy {
	prof, err := profile.Lookup(profile.Default)
	if err != nil {
		return &godwit.Policy{}
	}
	return &s.of(prof, &godwit.PolicyOverrides{}).policy
}

func newTerms(prof profile.Profile, overrides *godwit.PolicyOverrides) *terms {
	made := &terms{}
	if made.policy, made.refused = overrides.Apply(prof.Defaults()); made.refused != nil {
		made.policy = prof.Defaults()
	}
	for _, status := range prof.FollowStatuses() {
		if _, agreed := made.policy.Statuses[status]; !agreed {
			made.follow = append(made.follow, status)
		}
	}
	return made
}
