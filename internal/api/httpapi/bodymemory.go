package httpapi

// Bounds of the request bodies that are in memory at once.
const (
	maxTenantBodies = 128 << 20 // bytes of one tenant
	maxAllBodies    = 512 << 20 // bytes of all tenants together
	uncountedBody   = 64 << 10  // a body up to this length costs less than its connection and is not counted
)

// NewBodyQuota returns the quota of request bodies. All APIs of a server share one, because they share its memory.
func NewBodyQuota() *Quota { return NewQuota(maxTenantBodies, maxAllBodies) }
