package native

// What requests may hold at once beside their bodies.
const (
	maxStreams       = 64 // live feeds of a tenant
	maxStreamsOfAll  = 4096
	maxExports       = 4 // exports of a tenant
	maxExportsOfAll  = 64
	exportPageMemory = 8 << 20 // payloads of one page of an export
)
