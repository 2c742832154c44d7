package apptest

import (
	"fmt"
	"math/rand/v2"
)

// StableAddress returns a loopback address for a program that may end and start again. Its port lies below the range that
// systems use for outgoing connections, so that no connection takes it meanwhile. Another server may have the port already;
// a program that cannot listen there must be started with another address.
func StableAddress() string { return fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)) }

// addressTries bounds the addresses that are tried. If all fail, the cause is not a taken port.
const addressTries = 10
