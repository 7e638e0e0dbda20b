package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/projections"
)

// WithReadModels opens the ledger, starts the read models and calls do, whose queries wait
// until the read models have caught up.
func WithReadModels(ctx context.Context, d *setting.Ledger, do func(*Node, *projections.Projections) error) error {
	log := logs.New(slog.LevelWarn)
	n, err := Start(ctx, d, false, true, "", log, func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	p, err := ReadModels(ctx, n.Ledger, log)
	if err != nil {
		return err
	}
	defer p.Close()
	return do(n, p)
}

// catchUp is how long a command waits for read models. The service answers 503 after two
// seconds, so that the caller can ask again. A command waits longer, because it may be the
// first to start the read models after many events.
const catchUp = 30 * time.Second

// ReadModels starts the read models for one command, which waits longer for them than a
// request does.
func ReadModels(ctx context.Context, l *ledger.Ledger, log *slog.Logger) (*projections.Projections, error) {
	p, err := projections.Start(ctx, l, log)
	if err == nil {
		p.Patience = catchUp
	}
	return p, err
}
