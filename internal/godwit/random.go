package godwit

import (
	"crypto/rand"
	"sync"
)

// Random fills b with bytes from crypto/rand. It reads them in blocks: a delivery needs half a dozen ids, keys and nonces,
// and a system call for each would cost as much as its signature. Secrets are read from crypto/rand directly.
func Random(b []byte) {
	block := randomBlocks.Get().(*randomBlock)
	if len(b) > len(block.bytes)-block.used {
		rand.Read(block.bytes[:])
		block.used = 0
	}
	next := block.bytes[block.used : block.used+len(b)]
	copy(b, next)
	clear(next)
	block.used += len(b)
	randomBlocks.Put(block)
}

type randomBlock struct {
	bytes [1024]byte
	used  int
}

var randomBlocks = sync.Pool{New: func() any { return &randomBlock{used: len(randomBlock{}.bytes)} }}
