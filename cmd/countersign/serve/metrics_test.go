package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/setting"
)

// Metrics are served at the usual address. If that is taken, a second service on the machine uses
// a free port and prints it. An address from a setting is used, or is an error if it is taken.
func TestMetricsHaveAPortThatOneKnows(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }
	first, err := (&Command{}).listenForMetrics("127.0.0.1:0", say) // any free port, because the usual address may be taken on this machine
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if said.Len() > 0 {
		t.Errorf("said %q", said.String())
	}
	taken := first.Addr().String()
	second, err := (&Command{}).listenForMetrics(taken, say)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if want := taken + " is taken: metrics are at " + second.Addr().String() + " (set METRICS_LISTEN to choose)\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	if l, err := (&Command{Service: setting.Service{MetricsListen: taken}}).listenForMetrics(setting.MetricsAddress, say); err == nil {
		l.Close()
		t.Error("a chosen address that is taken was exchanged for another")
	}
}
