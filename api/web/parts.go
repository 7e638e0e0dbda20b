package web

import (
	"fmt"
	"html/template"
	"math/big"
	"strings"
	"time"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/policy/canon"
)

// functions returns the functions that templates call.
func functions(clock func() time.Time) template.FuncMap {
	return template.FuncMap{
		"ago":     func(t any) string { return ago(Instant(t), clock()) },
		"instant": func(t any) string { return stamp(Instant(t)) },
		"full":    func(t any) string { return full(Instant(t)) },
		"past":    func(t any) bool { return Instant(t).Before(clock()) },
		"text":    textOf,
		"visible": func(text any) string { return words.Visible(textOf(text)) },
		"quote":   func(text any) string { return words.Quote(textOf(text)) },
		"network": networkNamed,
		"short":   short,
		"words":   spaced,
		"usd":     dollars,
		"count":   count,
		"dict":    dict,
		"capital": func(text string) string { return strings.ToUpper(text[:1]) + text[1:] },
	}
}

// networkNamed returns the display name of a blockchain network, such as "Base" for "eip155:8453".
// It returns "" if the member is not "network" or the network has no name.
func networkNamed(member, value string) string {
	if member != "network" {
		return ""
	}
	return words.Network(value)
}

// Instant returns a time from a time.Time, an RFC 3339 text, or a pointer to either. For any other
// value it returns the zero time.
func Instant(t any) time.Time {
	switch t := t.(type) {
	case time.Time:
		return t
	case *time.Time:
		if t != nil {
			return *t
		}
	case *string:
		if t != nil {
			return Instant(*t)
		}
	case string:
		parsed, err := time.Parse(time.RFC3339, t)
		if err == nil {
			return parsed
		}
	}
	return time.Time{}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return canon.Stamp(t)
}

func full(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January 2006, 15:04:05 UTC")
}

// ago returns in words how long ago a time was or how soon it will be. It returns the date if the
// time is more than a week away.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d, form := now.Sub(t), "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	switch {
	case d < 10*time.Second && form == "%s ago":
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf(form, count(int(d/time.Second), "second"))
	case d < time.Hour:
		return fmt.Sprintf(form, count(int(d/time.Minute), "minute"))
	case d < 24*time.Hour:
		return fmt.Sprintf(form, count(int(d/time.Hour), "hour"))
	case d < 8*24*time.Hour:
		return fmt.Sprintf(form, count(int(d/(24*time.Hour)), "day"))
	}
	return t.UTC().Format("2 Jan 2006")
}

// textOf returns a text, or the text of a pointer. It returns "" for nil.
func textOf(text any) string {
	switch text := text.(type) {
	case string:
		return text
	case *string:
		if text != nil {
			return *text
		}
	}
	return ""
}

// count returns a number with its noun in the right form: "1 call", "2 calls".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short shortens an id to its prefix and the first and last four characters after the prefix. That
// is enough to tell two ids apart.
func short(id string) string {
	prefix := ""
	if i := strings.IndexByte(id, '_'); i > 0 && i <= 4 {
		prefix, id = id[:i+1], id[i+1:]
	}
	if len(id) <= 12 {
		return prefix + id
	}
	return prefix + id[:4] + "…" + id[len(id)-4:]
}

// spaced replaces the underscores in an API name by spaces, for display.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// dollars formats an amount in cents as US dollars.
func dollars(cents int64) string {
	return big.NewRat(cents, 100).FloatString(2)
}

// dict passes several values to a shared template. The arguments alternate names and values.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("the last name of a dict has no value")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("the name %v of a dict is not a string", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}
