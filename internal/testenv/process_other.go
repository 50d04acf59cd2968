//go:build !linux

package testenv

import (
	"context"
	"os/exec"
)

// dieWithParent does nothing here: a killed test process leaves its children running.
func dieWithParent(*exec.Cmd) {}

// awaitStopped assumes that the signal has been delivered by now.
func awaitStopped(context.Context, int) error { return nil }
