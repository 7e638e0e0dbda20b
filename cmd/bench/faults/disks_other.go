//go:build unix && !linux

package faults

import (
	"context"
	"fmt"
)

// Small disks are mounted on Linux only.
func diskFull(context.Context, *world) error { return fmt.Errorf("%w: needs Linux", ErrSkipped) }

func walFull(context.Context, *world) error { return fmt.Errorf("%w: needs Linux", ErrSkipped) }
