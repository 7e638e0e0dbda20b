//go:build unix && !linux

package faults

import (
	"context"
	"fmt"
)

// The rows with full disks mount small disks, which this program can do on Linux only.
func diskFull(context.Context, *world) error { return fmt.Errorf("%w: needs Linux", ErrSkipped) }

func walFull(context.Context, *world) error { return fmt.Errorf("%w: needs Linux", ErrSkipped) }
