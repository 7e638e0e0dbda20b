//go:build !unix

package faults

import (
	"context"
	"errors"
)

// Run returns an error: the faults need signals that kill a process, which exist on Unix only.
func Run(context.Context, Options) error {
	return errors.New("faults are made with signals: run them on Linux or macOS")
}
