package postgresstore

// ClaimJobs is the statement that claims.
const ClaimJobs = claimJobs
