package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Built has the flag of commands that run countersign as separate processes.
type Built struct {
	Program string `help:"The built program. Default: build it." placeholder:"FILE"`
}

// With calls the function do with the path of the program. It builds the program first, unless the
// flag gives a path.
func (b Built) With(ctx context.Context, do func(program string) error) error {
	if b.Program != "" {
		return do(b.Program)
	}
	dir, err := os.MkdirTemp("", "countersign-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "countersign")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/countersign")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the program: %w", err)
	}
	return do(program)
}
