package migrations

// maxOrigin bounds the origin of a ledger. It is the first line of every
// checkpoint and goes into every genesis hash; a host name has at most 253
// octets, so this leaves room for no path worth having beyond it.
const maxOrigin = 256

// prepareTries bounds how often Prepare starts again when another session
// changes the same roles at the same moment: roles belong to the whole server,
// so two databases can be prepared at once and no lock in one covers both.
const prepareTries = 10

// MaxPartitions bounds how many partitions a ledger may have: each costs every node a
// connection and a goroutine, and more than this spread no load any better.
const MaxPartitions = 256
