// Package logs creates the logger of the programs countersign and fanout.
package logs

import (
	"log/slog"
	"os"

	"github.com/countersign/countersign/cmd/countersign/screen"
)

// New returns a logger to standard error. It writes text if that is a terminal, and JSON
// otherwise.
func New(level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit}
	if screen.IsTerminal(os.Stderr) {
		return slog.New(slog.NewTextHandler(os.Stderr, options))
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, options))
}

// withUnit writes a duration with its unit, such as 1.5s. The JSON handler would write a number of
// nanoseconds, which readers could mistake for seconds or milliseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
