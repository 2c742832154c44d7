package store

// JoinIDs writes ids one after the other, as stores keep the lists of a fan-out.
func JoinIDs[T ~[16]byte](list []T) []byte {
	joined := make([]byte, 0, 16*len(list))
	for _, id := range list {
		joined = append(joined, id[:]...)
	}
	return joined
}

// SplitIDs reads what JoinIDs wrote.
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
