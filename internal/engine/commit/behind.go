package commit

// leaveBehind answers the requests of a batch whose receivers were chosen by an older config version than those of another
// request: the store would refuse them, and the others with them.
func leaveBehind(b batch) batch {
	var latest int64
	for _, op := range b.requests {
		latest = max(latest, op.ConfigVersion)
	}
	return b.without(func(op *requestOp) bool { return op.ConfigVersion != 0 && op.ConfigVersion != latest })
}

// answerBehind answers the requests whose config version is not the store's. It returns the rest of the batch, which names no
// version.
func (b batch) answerBehind() batch {
	return b.without(func(op *requestOp) bool { return op.ConfigVersion != 0 })
}

// without answers the requests that are behind and returns the others.
func (b batch) without(behind func(*requestOp) bool) batch {
	rest := batch{records: b.records}
	for i, op := range b.requests {
		if !behind(op) {
			if rest.requests != nil {
				rest.requests = append(rest.requests, op)
			}
			continue
		}
		if rest.requests == nil {
			rest.requests = append(make([]*requestOp, 0, len(b.requests)), b.requests[:i]...)
		}
		op.done <- Answer{Behind: true}
	}
	if rest.requests == nil {
		return b
	}
	return rest
}
