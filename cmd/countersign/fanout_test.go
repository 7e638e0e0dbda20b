package main

import (
	"log/slog"
	"strings"
	"testing"
)

// The scheme of an address names the sink, whose checkpoint is kept under that name
// for ever.
func TestAnAddressNamesItsSink(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
	for address, name := range map[string]string{"nats://127.0.0.1:1": "nats", "tls://127.0.0.1:1": "nats", "kafka://127.0.0.1:1/events": "kafka",
		"pubsub://projects/p-1/topics/events": "pubsub"} {
		sink, err := fanout(address, slog.New(slog.DiscardHandler))
		if err != nil || sink.Name != name {
			t.Errorf("%s: %q, %v", address, sink.Name, err)
			continue
		}
		_ = sink.Publisher.Close()
	}
	for _, bad := range []string{"S3CRET", "amqp://u:S3CRET@h", "kafka://u:S3CRET@h", "pubsub://u:S3CRET@projects/p-1/topics/events"} {
		if _, err := fanout(bad, slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
