package migrations

// maxOrigin is the maximum length of the origin of a ledger. The origin is the first line of
// every checkpoint and is part of every genesis hash. A host name has at most 253 bytes, so
// this is enough.
const maxOrigin = 256

// prepareTries is how often Prepare starts again when another session changes the same roles at
// the same time. Roles belong to the server, so two databases can be prepared at once, and no
// lock in one database covers both.
const prepareTries = 10

// MaxPartitions is the maximum number of partitions of a ledger. Each costs every node a
// connection and a goroutine, and more of them do not distribute load better.
const MaxPartitions = 256
