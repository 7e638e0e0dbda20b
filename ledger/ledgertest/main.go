package ledgertest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
)

// Overlap lets more tests of a program run at once than there are processors: most of
// them wait for a database, for a time-out or for a process. For a TestMain, before
// m.Run; go test -parallel says otherwise. Where connections are scarce it does nothing:
// on a server that is not ours (TEST_DATABASE_URL), and with ledgers of many partitions
// (TEST_PARTITIONS), of which each has its own.
func Overlap() {
	if os.Getenv("TEST_DATABASE_URL") == "" && Partitions() == 1 {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // a flag of every test program, and a number
	}
}
