package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// The tables ledger_head and events have no CHECK constraints. Verification names the row and the
// column of each value that no append writes.
func TestVerificationNamesEachValueThatNoAppendWrites(t *testing.T) {
	t.Parallel()
	a := fixture.NewAudited(t)
	var plain, numbered, first int64 // positions of an event without a number in a series, of one with such numbers, and of the first event of a series
	for query, into := range map[string]*int64{
		`select min(pos) from events where series is null and idem_key is not null`: &plain,
		`select min(pos) from events where agent_n > 0 and series_n > 1`:            &numbered,
		`select min(pos) from events where agent_n = 1 and series_n = 1`:            &first,
	} {
		if err := a.Super.QueryRow(t.Context(), query).Scan(into); err != nil {
			t.Fatal(query, err)
		}
	}
	const short, long, hash = `'\x00'::bytea`, `sha256('x') || '\x00'::bytea`, `sha256('x')`
	type changed struct{ column, value string }
	try := func(table, row, where string, position int64, change changed, column string) {
		t.Helper()
		defer a.Restore()
		a.Exec(fmt.Sprintf(`update %s set %s = %s where %s`, table, change.column, change.value, where))
		report := a.Run(a.Audit)
		if !slices.ContainsFunc(report.Faults, func(f audit.Fault) bool {
			return f.Table == table && strings.HasSuffix(f.Row, row) && f.Column == column && (f.Position == position || position == 0)
		}) {
			t.Errorf("%s.%s = %s: no fault of %s in %v", table, change.column, change.value, column, report.Faults)
		}
	}
	for _, c := range []changed{{"epoch", "0"}, {"epoch", "-1"}, {"pos", "-1"}, {"last_hash", short}, {"last_hash", long}, {"origin", "''"}} {
		try("ledger_head", "p 0", "p = 0", 0, c, c.column)
	}
	a.Exec(`insert into ledger_head (p, origin, last_hash) values (-1, 'x', sha256('x'))`)
	if report := a.Run(a.Audit); len(report.Faults) != 1 || report.Faults[0].Table != "ledger_head" || report.Faults[0].Column != "p" {
		t.Errorf("a head row of partition -1: %v", report.Faults)
	}
	a.Restore()
	for _, c := range []changed{{"p", "-1"}, {"pos", "0"}, {"pos", "-1"}, {"tseq", "0"}, {"tseq", "-1"}, {"version", "0"}, {"version", "-1"},
		{"schema_version", "-1"}, {"more", "-1"}, {"more", "64"}, {"occurred_us", "0"}, {"occurred_us", "-1"},
		{"idem_key", short}, {"idem_key", long}, {"idem_key", "null"}, {"content_hash", short}, {"content_hash", long}, {"content_hash", "null"},
		{"payload", "'x'"}, {"payload", "convert_to(repeat('x', 2097153), 'UTF8')"},
		{"payload_hash", short}, {"payload_hash", long}, {"prev", short}, {"prev", long}, {"hash", short}, {"hash", long},
		{"series", "''"}, {"series_n", "1"}, {"series_n", "0"}, {"series_prev", hash}, {"series_prev", "''"},
		{"agent", "''"}, {"agent_n", "1"}, {"agent_n", "0"}, {"agent_prev", hash}, {"agent_prev", "''"},
	} {
		at, column := plain, c.column
		if column == "p" && ledgertest.OnCluster() {
			continue // Citus changes no partition of a row, because the row would have to move to another server
		}
		switch {
		case c.column == "pos":
			at = 0 // the changed row is no longer at its position
		case c.column == "idem_key" && c.value == "null":
			column = "content_hash" // only one of key and content hash is set, and the fault names this column
		}
		try("events", "", fmt.Sprintf(`pos = %d`, plain), at, c, column)
	}
	for _, c := range []changed{
		{"series", "null"}, {"series_n", "null"}, {"series_n", "0"}, {"series_n", "-1"}, {"series_prev", "null"}, {"series_prev", short},
		{"agent", "null"}, {"agent", "''"}, {"agent_n", "null"}, {"agent_n", "0"}, {"agent_n", "-1"},
	} {
		column := c.column
		if strings.HasSuffix(column, "series") || column == "agent" && c.value == "null" {
			column += "_n" // the number remains, but its name is removed
		}
		if column == "series_prev" && c.value == "null" {
			column = "series_n"
		}
		try("events", "", fmt.Sprintf(`pos = %d`, numbered), numbered, c, column)
	}
	for _, c := range []changed{{"series_prev", hash}, {"agent_prev", hash}, {"agent_prev", short}} {
		column := strings.Replace(c.column, "prev", "n", 1)
		if c.value == short {
			column = c.column
		}
		try("events", "", fmt.Sprintf(`pos = %d`, first), first, c, column)
	}
}
