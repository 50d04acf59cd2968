package gateways

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time, user and system, that a process has taken with all
// of its threads. /proc/PID/stat has it in steps of 10 ms, which is too coarse for a second's
// requests; the process's clock has nanoseconds.
func processorTime(pid int) (time.Duration, error) {
	const clockOfProcess = 2 // CPUCLOCK_SCHED, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|clockOfProcess), &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// sleepPrecisely sets the calling thread, which has to be locked, to wake up from [sleep] within
// a microsecond of its time, and not within the usual 50.
func sleepPrecisely() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// sleep returns after d, or earlier if a signal comes. A timer of Go is up to a millisecond
// late, which is longer than a request takes.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}
