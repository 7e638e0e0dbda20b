//go:build !unix

package faults

import (
	"context"
	"errors"
)

// Run needs signals that kill a process.
func Run(context.Context, Options) error {
	return errors.New("faults are made with signals: run them on Linux or macOS")
}
