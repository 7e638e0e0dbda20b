package localpg

import "time"

const (
	// oldestMajor is the first major version of PostgreSQL in which ordinary users cannot create
	// objects in the schema public by default. It is also the oldest that the tests use.
	oldestMajor = 15

	// port is only part of the socket's name; the server does not listen on the network.
	port = 5432

	// maxSocketPath is below the size of the path in sockaddr_un on every system: 108 bytes on
	// Linux, 104 on macOS, both with a final NUL.
	maxSocketPath = 100

	// segmentMB is the size of a new cluster's WAL segments. The server writes each segment once
	// before its first use, while commits wait. With 16 MB, the server's default, that takes 50 to
	// 60 ms (measured with the quick gate at half of saturation: p99 49 ms); with 4 MB it is not
	// noticeable (18 ms). After the first checkpoint segments are reused.
	segmentMB = "4"

	// readyEvery is the time between two checks of a starting server. A connection to a local
	// socket costs almost nothing.
	readyEvery = 20 * time.Millisecond

	// readyWithin limits the time of a start. A server that reports that it is recovering may take
	// longer, because it is replaying commits that must not be lost.
	readyWithin = 30 * time.Second

	// recoveryLine is the time between two lines that report a running recovery.
	recoveryLine = 5 * time.Second

	// probeWithin limits one attempt to connect, because a server may hang.
	probeWithin = 5 * time.Second

	// fastStop is the time after which a fast shutdown becomes an immediate one, and immediateStop
	// the time after which that becomes a kill. A fast shutdown usually takes 20 ms; only a
	// checkpoint on a slow disk takes seconds.
	fastStop      = 10 * time.Second
	immediateStop = 5 * time.Second

	// killedWithin is the time that the kernel may need to end a killed process.
	killedWithin = 5 * time.Second

	// startTries limits how often a start is repeated because another server started or ended
	// meanwhile.
	startTries = 5

	// maxLog is the size in bytes from which a start renames postgres.log.
	maxLog = 10 << 20

	// logTail is the number of bytes of the log that an error message contains.
	logTail = 2 << 10
)

const (
	// dialWithin and headersWithin end a fetch on a network that drops packets.
	dialWithin    = 5 * time.Second
	headersWithin = 15 * time.Second

	// fetchWithin is long enough for 55 MB at 1 Mbit/s.
	fetchWithin = 10 * time.Minute

	// maxPackage is the largest download in bytes; the largest pinned package has 55.2 MB.
	maxPackage = 80 << 20

	// maxEntries, maxUnpacked and maxFile limit the content of a package. The Linux package has
	// 1,029 entries with 60 MB, and its largest file has 27 MB.
	maxEntries  = 20_000
	maxUnpacked = 512 << 20
	maxFile     = 128 << 20

	// maxLinks limits the links in pg-symlinks.json, which lists about a dozen.
	maxLinks     = 1_000
	maxLinksFile = 1 << 20
)
