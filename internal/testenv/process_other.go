//go:build !linux

package testenv

import (
	"context"
	"os/exec"
)

// dieWithParent does nothing here: a killed test process leaves its children running.
func dieWithParent(*exec.Cmd) {}

// AwaitStopped assumes that the signal has been delivered by now.
func AwaitStopped(context.Context, int) error { return nil }
