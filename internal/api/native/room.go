package native

// Bounds of what requests may hold at once beside their bodies.
const (
	maxStreams       = 64 // live streams of a tenant
	maxStreamsOfAll  = 4096
	maxExports       = 4 // exports of a tenant
	maxExportsOfAll  = 64
	maxSearches      = 2 // searches of a tenant
	maxSearchesOfAll = 16
	exportPageMemory = 8 << 20 // bytes of payload in one page of an export
)
