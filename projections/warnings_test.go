package projections

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
)

// Two nodes share the batches of a read model. That the other node was faster is not logged as an
// error; a real error is.
func TestOnlyRealErrorsOfTheRouterAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	router := watermill.NewSlogLogger(slog.New(newWarnings(slog.NewTextHandler(&log, nil))))
	for _, err := range []error{errElsewhere, fmt.Errorf("apply: %w", errGap), errors.New("the disk is gone"), errors.New("the disk is gone")} {
		router.With(watermill.LogFields{"handler_name": "status"}).Error("Handler returned error", err, nil)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "the disk is gone") {
		t.Errorf("logged:\n%s", log.String())
	}
}
