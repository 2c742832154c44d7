package apptest

import (
	"fmt"
	"math/rand/v2"
)

// StableAddress returns a loopback address for a program that may end and come back: its port lies below the range from
// which systems take ports for outgoing connections, so that none of them gets it meanwhile. Another server may have the
// port already; a program that cannot listen there must be tried with another address.
func StableAddress() string { return fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)) }

// addressTries is how many addresses are tried before it must be something else that fails.
const addressTries = 10
