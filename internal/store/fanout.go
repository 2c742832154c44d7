package store

// JoinIDs concatenates ids. Stores keep the lists of a fan-out in this form.
func JoinIDs[T ~[16]byte](list []T) []byte {
	joined := make([]byte, 0, 16*len(list))
	for _, id := range list {
		joined = append(joined, id[:]...)
	}
	return joined
}

// SplitIDs is the inverse of JoinIDs.
func SplitIDs[T ~[16]byte](joined []byte) []T {
	if len(joined) == 0 {
		return nil
	}
	list := make([]T, len(joined)/16)
	for i := range list {
		list[i] = T(joined[16*i:])
	}
	return list
}
