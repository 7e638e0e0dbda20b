package ledgertest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
)

// Overlap lets more tests of a program run in parallel than there are processors, because most of
// them wait for a database, a time-out or a process. A TestMain calls it before m.Run. go test
// -parallel overrides it. It does nothing if connections are scarce: on a server of
// TEST_DATABASE_URL, and with several partitions (TEST_PARTITIONS), each of which has its own
// connections.
func Overlap() {
	if os.Getenv("TEST_DATABASE_URL") == "" && Partitions() == 1 {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // cannot fail: every test program has this flag, and the value is a number
	}
}
