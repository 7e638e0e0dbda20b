package query

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/countersign/countersign/policy"
)

// WrongPeriod is the message for a text that Period does not understand.
const WrongPeriod = "period must be a quarter, month or year, such as 2026Q3, 2026-09 or 2026"

var periodForm = regexp.MustCompile(`^(\d{4})(?:Q([1-4])|-(0[1-9]|1[0-2]))?$`)

// Period returns the first moment of a year, quarter or month, and of the following one, in UTC.
// ok is false if the text is none of 2026, 2026Q3 and 2026-09.
func Period(text string) (from, to time.Time, ok bool) {
	parts := periodForm.FindStringSubmatch(text)
	if parts == nil {
		return from, to, false
	}
	year, _ := strconv.Atoi(parts[1]) // no error: the pattern has only digits
	month, months := 1, 12
	if q, err := strconv.Atoi(parts[2]); err == nil {
		month, months = 3*q-2, 3
	}
	if m, err := strconv.Atoi(parts[3]); err == nil {
		month, months = m, 1
	}
	from = time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	return from, from.AddDate(0, months, 0), true
}

// Quarter returns the name of the quarter that contains a time, such as 2026Q3.
func Quarter(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("%04dQ%d", t.Year(), (int(t.Month())+2)/3)
}

// Bounds returns the period that a person has chosen in a form. The dates from and to (with this
// day included) replace the named period. Both results are zero if nothing is chosen.
func Bounds(named, from, to string) (start, end time.Time, err error) {
	if named != "" && from == "" && to == "" {
		start, end, ok := Period(named)
		if !ok {
			err = policy.Refuse("invalid_format", "/period", WrongPeriod)
		}
		return start, end, err
	}
	if start, err = period("from", from, 0); err != nil {
		return start, end, err
	}
	end, err = period("to", to, 24*time.Hour)
	return start, end, err
}
