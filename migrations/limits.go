package migrations

// maxOrigin is the largest length in bytes of a ledger's origin. The origin is the first line of
// every checkpoint and is part of every genesis hash. The limit leaves room for a host name of 253
// bytes.
const maxOrigin = 256

// prepareTries is the number of attempts of Prepare if another session changes the same roles at
// the same time. Roles belong to the server, so two databases can be prepared concurrently, and no
// lock in one database covers both.
const prepareTries = 10

// MaxPartitions is the largest number of partitions of a ledger. Each costs every node a
// connection and a goroutine, and more partitions do not distribute the load better.
const MaxPartitions = 256
