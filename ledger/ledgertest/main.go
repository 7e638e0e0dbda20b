package ledgertest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
)

// Overlap lets more tests of a program run at once than there are processors, since most of
// them wait for a database, for a time-out or for a process. A TestMain calls it before m.Run.
// go test -parallel overrides it. It does nothing if connections are scarce: on a server of
// TEST_DATABASE_URL, and with ledgers of many partitions (TEST_PARTITIONS), since each partition
// has connections of its own.
func Overlap() {
	if os.Getenv("TEST_DATABASE_URL") == "" && Partitions() == 1 {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // a flag of every test program, and a number
	}
}
