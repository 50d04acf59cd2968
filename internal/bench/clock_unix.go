//go:build unix

package bench

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is a clock in nanoseconds that all processes of this machine share, and
// that cannot be set.
func monotonic() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return time.Now().UnixNano() // no system that Go runs on comes here
	}
	return t.Nano()
}

// cpuTime is the processor time that this process has taken, user and system.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
