package web

import "time"

// Day is one column of the chart of verdicts.
type Day struct {
	Date                      time.Time
	Allowed, Denied, Reviewed int
}

// Chart is the verdicts of some days as columns, drawn into a box of 720 x 160.
type Chart struct {
	Days []Day
	Bars []Bar
	Most int // decisions of the busiest day
}

// Bar is one rectangle: a verdict of a day.
type Bar struct {
	Class, Title        string
	X, Y, Width, Height int
}

// Columns draws the days before and with today; days without decisions are there.
func Columns(counted map[time.Time]Day, today time.Time, days int) Chart {
	const width, height = 720, 160
	var c Chart
	for n := days - 1; n >= 0; n-- {
		date := today.UTC().Truncate(24*time.Hour).AddDate(0, 0, -n)
		d := counted[date]
		d.Date = date
		c.Days = append(c.Days, d)
		c.Most = max(c.Most, d.Allowed+d.Denied+d.Reviewed)
	}
	if c.Most == 0 {
		return c
	}
	step := width / days
	for i, d := range c.Days {
		y := height
		for _, part := range []struct {
			class string
			n     int
		}{{"allow", d.Allowed}, {"needs_review", d.Reviewed}, {"deny", d.Denied}} {
			if part.n == 0 {
				continue
			}
			h := max(part.n*height/c.Most, 2)
			y -= h
			c.Bars = append(c.Bars, Bar{part.class, d.Date.Format("2 Jan") + ": " + count(part.n, "decision") + " " + words(part.class), i*step + 2, y, step - 4, h})
		}
	}
	return c
}
