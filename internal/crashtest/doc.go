// Package crashtest kills and stops the real binary under load, on both stores, and counts what arrives: nothing that was
// acknowledged may be missing, and only what was on its way at a kill may come twice. It holds tests alone.
package crashtest
