package localpg

import "time"

const (
	// oldestMajor is the first major version of PostgreSQL whose public schema is closed
	// by default, and the oldest that the tests run with.
	oldestMajor = 15

	// port only names the socket file; nothing listens on the network.
	port = 5432

	// maxSocketPath is below the size of sockaddr_un's path on every system: 108 bytes on
	// Linux, 104 on macOS, both with a final NUL.
	maxSocketPath = 100

	// segmentMB is the size of a new cluster's WAL segments. The server writes each one
	// out once before its first use, while commits wait: 16 MB, its own default, take 50
	// to 60 ms (measured with the quick gate at half of saturation, p99 49 ms), 4 MB go
	// unnoticed (18 ms). From the first checkpoint on segments are used again.
	segmentMB = "4"

	// readyEvery is how often a starting server is asked; a connection to a local
	// socket costs it nothing.
	readyEvery = 20 * time.Millisecond

	// readyWithin bounds a start. While the server says that it is recovering, it may
	// take longer: it is replaying commits that must not be lost.
	readyWithin = 30 * time.Second

	// recoveryLine is how often a line tells the person that recovery goes on.
	recoveryLine = 5 * time.Second

	// probeWithin bounds one attempt to connect to a server that may hang.
	probeWithin = 5 * time.Second

	// fastStop is how long a fast shutdown may take before it becomes an
	// immediate one, and that one before it becomes a kill. It usually takes 20 ms;
	// only a checkpoint on a slow disk takes seconds.
	fastStop      = 10 * time.Second
	immediateStop = 5 * time.Second

	// killedWithin is how long the kernel may take to end a killed process.
	killedWithin = 5 * time.Second

	// startTries bounds how often a start begins again because another server
	// came or went meanwhile.
	startTries = 5

	// maxLog is how large postgres.log may be at a start before it is renamed.
	maxLog = 10 << 20

	// logTail is how much of the log an error message repeats.
	logTail = 2 << 10
)

const (
	// dialWithin and headersWithin end a fetch on a network that swallows
	// packets; one that refuses ends at once.
	dialWithin    = 5 * time.Second
	headersWithin = 15 * time.Second

	// fetchWithin lets 55 MB pass at 1 Mbit/s.
	fetchWithin = 10 * time.Minute

	// maxPackage bounds the download; the largest pinned one has 55.2 MB.
	maxPackage = 80 << 20

	// maxEntries, maxUnpacked and maxFile bound the files of a package. The
	// Linux package has 1,029 entries, 60 MB in all, and 27 MB in one file.
	maxEntries  = 20_000
	maxUnpacked = 512 << 20
	maxFile     = 128 << 20

	// maxLinks bounds pg-symlinks.json, which lists about a dozen.
	maxLinks     = 1_000
	maxLinksFile = 1 << 20
)
