package sqlitestore

// ClaimJobs is the statement that claims.
const ClaimJobs = claimJobs
