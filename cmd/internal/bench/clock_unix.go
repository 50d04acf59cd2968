//go:build unix

package bench

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time in nanoseconds of a clock that all processes of this machine share,
// and that cannot be set.
func monotonic() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return time.Now().UnixNano() // unreachable on the systems that Go supports
	}
	return t.Nano()
}

// cpuTime returns the user and system time of this process.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
