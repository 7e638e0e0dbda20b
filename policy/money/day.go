package money

import (
	"time"
)

// Day is a calendar day, as the number of days since 1970-01-01.
type Day int

const layout = "2006-01-02"

// ParseDay parses an existing date YYYY-MM-DD of the years 1900 to 2199. ok is false for other
// text.
func ParseDay(text string) (Day, bool) {
	t, err := time.Parse(layout, text)
	if err != nil || t.Year() < minYear || t.Year() > maxYear {
		return 0, false
	}
	return dayOf(t), true
}

func dayOf(t time.Time) Day { return Day(t.Unix() / secondsPerDay) }

const secondsPerDay = 24 * 60 * 60

func (d Day) time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// String returns the day as YYYY-MM-DD.
func (d Day) String() string { return d.time().Format(layout) }

// Date returns year, month (1 to 12) and day of the month.
func (d Day) Date() (year, month, day int) {
	y, m, dd := d.time().Date()
	return y, int(m), dd
}

// MonthEnd reports whether the day is the last day of its month.
func (d Day) MonthEnd() bool {
	_, _, next := (d + 1).Date()
	return next == 1
}

// AddMonths adds n months to a day. If the month is too short, the result is its last day: one
// month after 31 January is 28 or 29 February.
func (d Day) AddMonths(n int) Day {
	year, month, day := d.Date()
	first := time.Date(year, time.Month(month+n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return dayOf(first) + Day(min(day, last)-1)
}
