// Package crashtest kills and stops the real binary under load, on both stores, and counts the deliveries: no acknowledged
// event may be missing, and only deliveries under way at a kill may come twice. It holds only tests.
package crashtest
