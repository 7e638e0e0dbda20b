package logs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestDurationsInLogsHaveAUnit(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{ReplaceAttr: withUnit}))
	log.Info("m", "took", 1500*time.Millisecond, slog.Group("g", "wait", 2*time.Microsecond))
	if got := text.String(); !strings.Contains(got, `"took":"1.5s"`) || !strings.Contains(got, `"wait":"2µs"`) {
		t.Error(got)
	}
}
