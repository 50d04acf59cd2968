package gateways

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time, user and system, that all threads of a process have
// used. It reads the process's clock, in nanoseconds: /proc/PID/stat counts in steps of 10 ms,
// which is too coarse for one second of requests.
func processorTime(pid int) (time.Duration, error) {
	const clockOfProcess = 2 // CPUCLOCK_SCHED, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|clockOfProcess), &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// sleepPrecisely makes the calling thread, which must be locked, wake up from [sleep] within a
// microsecond of the time asked for. The default is 50 µs.
func sleepPrecisely() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// sleep returns after d, or earlier if a signal arrives. It is used because a Go timer is up to a
// millisecond late, which is longer than a request takes.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}
